"""Grayscale: color images become gray ones."""

from functools import partial
from typing import ClassVar

import numpy as np

from hebbes.wrappers.base import Observations, ObservationWrapper
from hebbes.wrappers.spaces import make_box, require_uint8_images


class Grayscale(ObservationWrapper):
    """(height, width, 3) uint8 RGB -> (height, width, 1) uint8: 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), rounded.

    These are OpenCV's weights, in its fixed-point arithmetic. Gymnasium's GrayscaleObservation uses those of BT.709.
    """

    switch: ClassVar[str] = "convert color images to gray"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._height, self._width, channels = require_uint8_images(self.env, "grayscale")
        if channels != 3:
            raise ValueError(f"grayscale needs images of 3 channels, got {channels}")
        self.observation_space = make_box(0, 255, (self._height, self._width, 1), dtype=np.uint8)
        import cv2

        cv2.setNumThreads(1)  # engines have their own threads; OpenCV's would compete with them for the cores
        self._convert = partial(cv2.cvtColor, code=cv2.COLOR_RGB2GRAY)

    def transform(self, observations: Observations) -> Observations:
        """The luma of every pixel."""
        pixels = observations.reshape(-1, self._width, 3)  # one tall image: one call for the whole batch
        return self._convert(pixels).reshape(-1, self._height, self._width, 1)
