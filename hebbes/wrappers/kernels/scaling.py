"""The loop of Scale: bytes become numbers between 0 and 1."""

import numpy as np
from numba import float32, types, uint8, void

from hebbes.compilation import njit


@njit(void(types.Array(uint8, 1, "C", readonly=True), float32[::1]), nogil=True, cache=True, error_model="numpy")
def scale_bytes(values: np.ndarray, scaled: np.ndarray) -> None:
    """Writes the nearest float32 to each value over 255."""
    for i in range(len(values)):
        scaled[i] = np.float32(values[i]) / np.float32(255)
