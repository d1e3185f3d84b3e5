"""Crop: images without some of their edges."""

from dataclasses import dataclass

import numpy as np

from hebbes.contracts.option import option
from hebbes.wrappers.base import Observations, ObservationWrapper
from hebbes.wrappers.spaces import make_box, require_uint8_images


@dataclass(eq=False, kw_only=True)
class Crop(ObservationWrapper):
    """(height, width, channels) uint8 -> (height - top - bottom, width - left - right, channels) uint8.

    It takes away what a policy should not see, such as a score.
    """

    edges: tuple[int, int, int, int] | None = option(
        None,
        "pixels to cut off images at the top, the bottom, the left and the right, before all else is done with them",
        range=">= 0",
        flag="crop",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        height, width, channels = require_uint8_images(self.env, "Crop")
        top, bottom, left, right = self.edges or (0, 0, 0, 0)
        if top + bottom >= height or left + right >= width:
            raise ValueError(f"Crop leaves nothing: got {[top, bottom, left, right]} for images of {[height, width]}")
        self._rows, self._columns = slice(top, height - bottom), slice(left, width - right)
        shape = (height - top - bottom, width - left - right, channels)
        self.observation_space = make_box(0, 255, shape, dtype=np.uint8)

    def transform(self, observations: Observations) -> Observations:
        """What is left of every image, in a new array."""
        return observations[:, self._rows, self._columns].copy()
