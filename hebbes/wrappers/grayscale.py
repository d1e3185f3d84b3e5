"""Grayscale: color images become gray ones."""

import cv2
import numpy as np
from gymnasium.spaces import Box

from hebbes.contracts.environment import BatchEnv
from hebbes.wrappers.base import Observations, ObservationWrapper, require_uint8_images

cv2.setNumThreads(1)  # engines have their own threads; OpenCV's would compete with them for the cores


class Grayscale(ObservationWrapper):
    """(height, width, 3) uint8 RGB -> (height, width, 1) uint8: 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), rounded.

    These are OpenCV's weights, in its fixed-point arithmetic. Gymnasium's GrayscaleObservation uses those of BT.709.
    """

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        self._height, self._width, channels = require_uint8_images(env, "Grayscale")
        if channels != 3:
            raise ValueError(f"Grayscale needs images of 3 channels, got {channels}")
        self.observation_space = Box(0, 255, (self._height, self._width, 1), np.uint8)

    def transform(self, observations: Observations) -> Observations:
        """The luma of every pixel."""
        pixels = observations.reshape(-1, self._width, 3)  # one tall image: one call for the whole batch
        return cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).reshape(-1, self._height, self._width, 1)
