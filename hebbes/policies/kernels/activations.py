"""The activation functions of hidden layers. They keep NaN.

LLVM computes them for whole vectors of numbers, but would call the C library's tanh and exp for each number.
SELU: Klambauer et al. 2017, "Self-Normalizing Neural Networks", arXiv 1706.02515, eq. 2.
"""

import numpy as np
from numba import float32, int64, types, void

from hebbes.compilation import njit
from hebbes.policies.activations import ACTIVATIONS
from hebbes.simd import float_of

LAMBDA = np.float32(1.0507009873554805)
ALPHA = np.float32(1.6732632423543772)
TANH, SELU = ACTIVATIONS["tanh"], ACTIVATIONS["selu"]
_SATURATED = np.float32(7.9)
_FLOOR = np.float32(-87)  # below it, e^x is not a normal number, and e^x - 1 is -1 anyway
_LOG2_E = np.float32(1.44269504088896341)
_LN_2_HIGH, _LN_2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy", inline="always")
def tanh(x: np.float32) -> np.float32:
    """tanh to within 4e-7, vectorizable: the rational approximation of Eigen's `generic_fast_tanh_float`."""
    x = _SATURATED if x > _SATURATED else x  # two lines: LLVM does not vectorize a single one; NaN stays NaN
    x = -_SATURATED if x < -_SATURATED else x
    s = x * x
    p = np.float32(-2.76076847742355e-16) * s + np.float32(2.00018790482477e-13)
    p = p * s + np.float32(-8.60467152213735e-11)
    p = p * s + np.float32(5.12229709037114e-08)
    p = p * s + np.float32(1.48572235717979e-05)
    p = p * s + np.float32(6.37261928875436e-04)
    p = p * s + np.float32(4.89352455891786e-03)
    q = np.float32(1.19825839466702e-06) * s + np.float32(1.18534705686654e-04)
    q = q * s + np.float32(2.26843463243900e-03)
    q = q * s + np.float32(4.89352518554385e-03)
    return x * p / q


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


@njit(nogil=True, cache=True, fastmath={"contract"}, inline="always")
def _selu(x: np.float32) -> np.float32:
    """lambda x for x > 0, else lambda alpha (e^x - 1)."""
    below = ALPHA * (_exp(x if not x > 0 else np.float32(0)) - np.float32(1))
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
