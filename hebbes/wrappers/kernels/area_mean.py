"""The loop of Resize: every pixel of a smaller image is the mean of an area.

Each row of the result is mixed in three steps. None of them gathers single values, which would take longer than the
rest. First, rows of the image are mixed. Then each value of the mixed row is mixed with those of the next pixels, as if
an area began at every pixel. Last, vectors of neighboring values are copied from where areas do begin. A vector may
reach beyond them. The next one overwrites what it wrote there.
"""

import numpy as np
from jaxtyping import Int64, UInt, UInt8, UInt32

from hebbes.compilation import njit
from hebbes.simd import LANES, load, store

WEIGHT_BITS = 12  # an 8-bit pixel that is mixed twice with 12-bit weights just fits a uint32
HALF = 1 << (2 * WEIGHT_BITS - 1)
SHIFT = np.uint32(2 * WEIGHT_BITS)


@njit(nogil=True, cache=True)
def mix_areas(
    images: UInt8[np.ndarray, "images old_height old_values"],
    first_rows: UInt[np.ndarray, " height"],
    row_weights: UInt32[np.ndarray, "row_taps height"],
    value_weights: UInt32[np.ndarray, "value_taps old_values"],
    channels: int,
    copies: Int64[np.ndarray, "copies 2"],
    shrunk: UInt8[np.ndarray, "images height values"],
) -> None:
    """Writes the means of areas into `shrunk`. Weights of an area add up to 2**WEIGHT_BITS in rows and in columns.

    Weights of rows past the last one are 0. Each of `copies` has the place of a vector in the mixed row, and the place
    where it goes in the row of the result.
    """
    old_values, taps, values = images.shape[2], len(value_weights), shrunk.shape[2]
    row = np.zeros(old_values + taps * channels, np.uint32)  # zeros past the end, whose weights are 0
    mean, picked = np.empty(old_values + LANES, np.uint32), np.empty(values + LANES, np.uint32)
    from_mean, to_picked = mean.view(np.float32), picked.view(np.float32)  # copies keep the bits
    for image in range(len(shrunk)):
        for y in range(shrunk.shape[1]):
            row[:old_values] = 0
            for tap in range(len(row_weights)):
                weight = row_weights[tap, y]
                if weight:
                    source = images[image, first_rows[y] + np.uintp(tap)]
                    for x in range(old_values):
                        row[x] += weight * np.uint32(source[x])
            mean[:] = HALF
            for tap in range(taps):
                shifted, weights = row[tap * channels :], value_weights[tap]
                for x in range(old_values):
                    mean[x] += weights[x] * shifted[x]
            for copy in range(len(copies)):
                store(to_picked, copies[copy, 1], load(from_mean, copies[copy, 0]))
            target = shrunk[image, y]
            for x in range(values):
                target[x] = picked[x] >> SHIFT
