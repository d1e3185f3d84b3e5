"""The loop of Resize: every pixel of a smaller image is the mean of an area."""

import numpy as np
from jaxtyping import UInt, UInt8, UInt32

from hebbes.compilation import njit

WEIGHT_BITS = 12  # an 8-bit pixel that is mixed twice with 12-bit weights just fits a uint32
HALF = 1 << (2 * WEIGHT_BITS - 1)
SHIFT = np.uint32(2 * WEIGHT_BITS)


@njit(nogil=True, cache=True)
def mix_areas(
    images: UInt8[np.ndarray, "images old_height old_values"],
    rows: UInt[np.ndarray, "row_taps height"],
    row_weights: UInt32[np.ndarray, "row_taps height"],
    values: UInt[np.ndarray, "value_taps values"],
    value_weights: UInt32[np.ndarray, "value_taps values"],
    shrunk: UInt8[np.ndarray, "images height values"],
) -> None:
    """Writes the means of areas into `shrunk`. Weights of a pixel add up to 2**WEIGHT_BITS, in rows and in columns."""
    row = np.empty(images.shape[2], np.uint32)
    mean = np.empty(shrunk.shape[2], np.uint32)
    for image in range(shrunk.shape[0]):
        for y in range(shrunk.shape[1]):
            row[:] = 0
            for tap in range(rows.shape[0]):
                source, weight = images[image, rows[tap, y]], row_weights[tap, y]
                for x in range(row.size):
                    row[x] += weight * np.uint32(source[x])
            mean[:] = HALF
            for tap in range(values.shape[0]):
                index, weights = values[tap], value_weights[tap]
                for x in range(mean.size):
                    mean[x] += weights[x] * row[index[x]]
            target = shrunk[image, y]
            for x in range(mean.size):
                target[x] = mean[x] >> SHIFT
