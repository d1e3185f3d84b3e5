"""The activation functions of hidden layers. They keep NaN.

Tanh and SELU are made of e^x - 1. LLVM computes ours for whole vectors of numbers, but calls the C library's for each.
SELU: Klambauer et al. 2017, "Self-Normalizing Neural Networks", arXiv 1706.02515, eq. 2.
"""

import numpy as np
from numba import float32, int64, types, void

from hebbes.compilation import njit
from hebbes.policies.activations import ACTIVATIONS
from hebbes.policies.kernels.simd import float_of

LAMBDA = np.float32(1.0507009873554805)
ALPHA = np.float32(1.6732632423543772)
TANH, SELU = ACTIVATIONS["tanh"], ACTIVATIONS["selu"]
_FLOOR = np.float32(-87)  # below it, e^x is not a normal number, and e^x - 1 is -1 anyway
_LOG2_E = np.float32(1.44269504088896341)
_LN_2_HIGH, _LN_2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)


@njit(nogil=True, cache=True, fastmath={"contract"}, inline="always")
def _expm1(x: np.float32) -> np.float32:
    """e^x - 1 for x <= 0, with a relative error below 3e-7: x = n ln 2 + r, with Cephes' `expf` polynomial for e^r."""
    x = _FLOOR if x < _FLOOR else x
    n = np.floor(x * _LOG2_E + np.float32(0.5))
    r = x - n * _LN_2_HIGH - n * _LN_2_LOW
    p = np.float32(1.9875691500e-4) * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    power = float_of((np.int32(n) + np.int32(127)) << np.int32(23))
    return power * (p * r * r + r) + (power - np.float32(1))


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy", inline="always")
def tanh(x: np.float32) -> np.float32:
    """The hyperbolic tangent, with a relative error below 3e-7: tanh |x| = -m / (2 + m) with m = e^(-2 |x|) - 1."""
    m = _expm1(np.float32(-2) * abs(x))
    negative = m / (np.float32(2) + m)
    return -negative if x > 0 else negative


@njit(nogil=True, cache=True, fastmath={"contract"}, inline="always")
def _selu(x: np.float32) -> np.float32:
    """lambda x for x > 0, else lambda alpha (e^x - 1)."""
    below = ALPHA * _expm1(x if not x > 0 else np.float32(0))
    return LAMBDA * (x if x > 0 else below)


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
def activate(row: np.ndarray, number: int) -> None:
    """Applies the activation function of this number in `ACTIVATIONS` to a contiguous row, in place."""
    if number == TANH:
        for i in range(len(row)):
            row[i] = tanh(row[i])
    elif number == SELU:
        for i in range(len(row)):
            row[i] = _selu(row[i])
    else:
        for i in range(len(row)):
            row[i] = np.float32(0) if row[i] < 0 else row[i]


@njit(void(types.Array(float32, 2, "C"), int64), nogil=True, cache=True)
def activate_kernel(rows: np.ndarray, number: int) -> None:
    """Applies the activation function of this number to contiguous rows, in place."""
    for member in range(len(rows)):
        activate(rows[member], number)
