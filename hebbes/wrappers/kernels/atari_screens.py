"""The loop of Atari42: screens become small gray frames."""

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from hebbes.compilation import njit

TOP, SIDE, NEW_SIDE = 34, 160, 42
TAPS = 4


@njit(nogil=True, cache=True, fastmath={"contract"})
def shrink_screens(
    screens: UInt8[np.ndarray, "screens 3 210 160"],
    first: Int64[np.ndarray, " new"],
    weights: Float32[np.ndarray, "new taps"],
    frames: Float32[np.ndarray, "screens new new 1"],
) -> None:
    """Writes the frames: for each pixel of a line, 4 neighbors from `first` on, mixed with `weights`."""
    line = np.empty(SIDE, np.float32)
    for screen in range(len(screens)):
        for y in range(NEW_SIDE):
            line[:] = 0
            for tap in range(TAPS):
                row, weight = TOP + first[y] + tap, weights[y, tap] / np.float32(3 * 255)
                red, green, blue = screens[screen, 0, row], screens[screen, 1, row], screens[screen, 2, row]
                for x in range(SIDE):
                    gray = np.uint16(red[x]) + np.uint16(green[x]) + np.uint16(blue[x])
                    line[x] += weight * np.float32(gray)
            for x in range(NEW_SIDE):
                mixed = np.float32(0)
                for tap in range(TAPS):
                    mixed += weights[x, tap] * line[first[x] + tap]
                frames[screen, y, x, 0] = min(mixed, np.float32(1))
