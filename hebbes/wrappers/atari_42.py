"""Atari42: an Atari screen becomes 42 x 42 grey pixels, as in pytorch-es and the A3C code of I. Kostrikov before it.

Rows 34 to 193 and all 160 columns, shrunk to 80 x 80 and then to 42 x 42, mean over the colours, over 255. Both use
OpenCV's bilinear interpolation, which is a mean of four pixels the first time. All of it is one linear map, computed
here at once. Departure: nothing is rounded to whole grey levels on the way, so that a pixel may differ by 1 / 255.
"""

import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Float32, Int64, UInt8
from numba import njit

from hebbes.contracts.environment import BatchEnv
from hebbes.wrappers.base import Observations, ObservationWrapper, uint8_images

SCREEN = (210, 160, 3)
TOP = 34
SIDE, HALF_SIDE, NEW_SIDE = 160, 80, 42
TAPS = 4


class Atari42(ObservationWrapper):
    """(210, 160, 3) uint8 -> (42, 42, 1) float32 in [0, 1]."""

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        if uint8_images(env, "Atari42") != SCREEN:
            raise ValueError(f"Atari42 needs Atari's screens of {SCREEN}, got {env.observation_space.shape}")
        self.observation_space = Box(0.0, 1.0, (NEW_SIDE, NEW_SIDE, 1), np.float32)
        self._first, self._weights = bilinear_taps()

    def transform(self, observations: Observations) -> Observations:
        """Small grey frames, in a fresh array."""
        screens = np.ascontiguousarray(np.moveaxis(observations, -1, 1))  # no copy of what EnvPool returns
        frames = np.empty((len(screens), NEW_SIDE, NEW_SIDE, 1), np.float32)
        _shrink(screens, self._first, self._weights, frames)
        return frames


def bilinear_taps() -> tuple[Int64[np.ndarray, " new"], Float32[np.ndarray, "new taps"]]:
    """The first of the four pixels in a line of 160 that each of 42 mixes, and their weights, which add up to 1."""
    centres = (np.arange(NEW_SIDE) + 0.5) * (HALF_SIDE / NEW_SIDE) - 0.5
    first = np.floor(centres).astype(np.int64)
    second_weight = centres - first
    pairs = np.stack([1 - second_weight, second_weight], axis=1)
    return 2 * first, (np.repeat(pairs, 2, axis=1) / 2).astype(np.float32)


@njit(nogil=True, cache=True, fastmath={"contract"})
def _shrink(
    screens: UInt8[np.ndarray, "screens 3 210 160"],
    first: Int64[np.ndarray, " new"],
    weights: Float32[np.ndarray, "new taps"],
    frames: Float32[np.ndarray, "screens new new 1"],
) -> None:
    line = np.empty(SIDE, np.float32)
    for screen in range(len(screens)):
        for y in range(NEW_SIDE):
            line[:] = 0
            for tap in range(TAPS):
                row, weight = TOP + first[y] + tap, weights[y, tap] / np.float32(3 * 255)
                red, green, blue = screens[screen, 0, row], screens[screen, 1, row], screens[screen, 2, row]
                for x in range(SIDE):
                    grey = np.uint16(red[x]) + np.uint16(green[x]) + np.uint16(blue[x])
                    line[x] += weight * np.float32(grey)
            for x in range(NEW_SIDE):
                mixed = np.float32(0)
                for tap in range(TAPS):
                    mixed += weights[x, tap] * line[first[x] + tap]
                frames[screen, y, x, 0] = min(mixed, np.float32(1))
