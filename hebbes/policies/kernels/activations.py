"""The activation function that is compiled: SELU, which works in place and keeps NaN.

Klambauer et al. 2017, "Self-Normalizing Neural Networks", arXiv 1706.02515, eq. 2.
"""

import numpy as np
from numba import float32, types, void

from hebbes.compilation import njit
from hebbes.policies.kernels.simd import float_of

LAMBDA = np.float32(1.0507009873554805)
ALPHA = np.float32(1.6732632423543772)
_FLOOR = np.float32(-87)  # below it, e^x is not a normal number, and e^x - 1 is -1 anyway
_LOG2_E = np.float32(1.44269504088896341)
_LN_2_HIGH, _LN_2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)


@njit(nogil=True, cache=True, fastmath={"contract"}, inline="always")
def _exp(x: np.float32) -> np.float32:
    """e^x for x <= 0 to within 1e-7, vectorizable: x = n ln 2 + r, with Cephes' `expf` polynomial for e^r."""
    x = _FLOOR if x < _FLOOR else x
    n = np.floor(x * _LOG2_E + np.float32(0.5))
    r = x - n * _LN_2_HIGH - n * _LN_2_LOW
    p = np.float32(1.9875691500e-4) * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    return (p * r * r + r + np.float32(1)) * float_of((np.int32(n) + np.int32(127)) << np.int32(23))


@njit(void(types.Array(float32, 2, "C")), nogil=True, cache=True, fastmath={"contract"})
def selu_kernel(rows: np.ndarray) -> None:
    """lambda x for x > 0, else lambda alpha (e^x - 1), for each number of contiguous rows."""
    for member in range(len(rows)):
        row = rows[member]
        for i in range(len(row)):
            x = row[i]
            below = ALPHA * (_exp(x if not x > 0 else np.float32(0)) - np.float32(1))
            row[i] = LAMBDA * (x if x > 0 else below)
