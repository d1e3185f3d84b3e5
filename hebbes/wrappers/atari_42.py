"""Atari42: an Atari screen becomes 42 x 42 gray pixels, as in pytorch-es and the A3C code of I. Kostrikov before it.

Both take rows 34 to 193 and all 160 columns, shrink them to 80 x 80 and then to 42 x 42 with OpenCV's bilinear
interpolation, take the mean over the colors and divide by 255. The first shrinking is a mean of four pixels. All of
this is one linear map, which is computed here in one go. Departure: no intermediate result is rounded to whole gray
levels, so a pixel may differ by 1 / 255.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Int64

from hebbes.wrappers.base import Observations, ObservationWrapper
from hebbes.wrappers.spaces import make_box, require_uint8_images

SCREEN = (210, 160, 3)
HALF_SIDE, NEW_SIDE = 80, 42


class Atari42(ObservationWrapper):
    """(210, 160, 3) uint8 -> (42, 42, 1) float32 in [0, 1]."""

    switch: ClassVar[str] = (
        "preprocess Atari as pytorch-es does: 42 x 42 gray, normalized by the episode's running moments"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if require_uint8_images(self.env, "atari_42") != SCREEN:
            raise ValueError(f"atari_42 needs Atari's screens of {SCREEN}, got {self.env.observation_space.shape}")
        self.observation_space = make_box(0.0, 1.0, (NEW_SIDE, NEW_SIDE, 1), dtype=np.float32)
        from hebbes.wrappers.kernels.atari_screens import shrink_screens

        self._shrink = shrink_screens
        self._first, self._weights = compute_bilinear_taps()

    def transform(self, observations: Observations) -> Observations:
        """The small gray frames, in a new array."""
        # EnvPool's images have their channels first in memory, so this copies nothing
        screens = np.ascontiguousarray(np.moveaxis(observations, -1, 1))
        frames = np.empty((len(screens), NEW_SIDE, NEW_SIDE, 1), np.float32)
        self._shrink(screens, self._first, self._weights, frames)
        return frames


def compute_bilinear_taps() -> tuple[Int64[np.ndarray, " new"], Float32[np.ndarray, "new taps"]]:
    """For each of the 42 new pixels of a line: the first of the four old pixels (of 160) that it mixes, and weights.

    The weights of a pixel add up to 1.
    """
    centers = (np.arange(NEW_SIDE) + 0.5) * (HALF_SIDE / NEW_SIDE) - 0.5
    first = np.floor(centers).astype(np.int64)
    second_weight = centers - first
    pairs = np.stack([1 - second_weight, second_weight], axis=1)
    return 2 * first, (np.repeat(pairs, 2, axis=1) / 2).astype(np.float32)
