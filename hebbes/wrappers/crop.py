"""Crop: images without some of their edges."""

from collections.abc import Sequence
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
        edges = self.edges or (0, 0, 0, 0)
        shape = compute_cropped_shape(require_uint8_images(self.env, "crop"), edges)
        top, _, left, _ = edges
        self._rows, self._columns = slice(top, top + shape[0]), slice(left, left + shape[1])
        self.observation_space = make_box(0, 255, shape, dtype=np.uint8)

    def transform(self, observations: Observations) -> Observations:
        """What is left of every image, in a new array, as the wrappers outside need it."""
        return np.ascontiguousarray(observations[:, self._rows, self._columns])


def compute_cropped_shape(shape: Sequence[int], edges: Sequence[int]) -> tuple[int, int, int]:
    """The shape (height, width, channels) of images without these edges; ValueError if nothing is left."""
    (height, width, channels), (top, bottom, left, right) = shape, edges
    if top + bottom >= height or left + right >= width:
        raise ValueError(f"crop leaves nothing: got {list(edges)} for images of {[height, width]}")
    return height - top - bottom, width - left - right, channels
