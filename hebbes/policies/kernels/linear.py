"""The product of each member's matrix with its inputs, and the sum of products that all dense rows use."""

import numpy as np
from numba import int64, types, void

from hebbes.compilation import njit
from hebbes.policies.kernels.simd import unit_stride

_ROWS = types.Array(types.float32, 2, "A", readonly=True)
_INPUTS = types.Array(types.float32, 2, "C", readonly=True)
_OUTPUTS = types.Array(types.float32, 2, "C")
REORDERED = {"contract", "reassoc", "nsz"}
"""Fast-math flags for vectorized sums, in the same order every time. NaN and infinity are kept."""


@njit(nogil=True, cache=True, fastmath=REORDERED)
def dot(matrix: np.ndarray, out: int, inputs: np.ndarray) -> np.float32:
    """Row `out` of a contiguous matrix times a vector. All layers of dense rows use it and add in one order."""
    total = np.float32(0)
    for i in range(len(inputs)):
        total += matrix[out, i] * inputs[i]
    return total


@njit(void(_ROWS, int64, int64, _INPUTS, _OUTPUTS), nogil=True, cache=True)
def linear_kernel(weights: np.ndarray, start: int, bias_start: int, inputs: np.ndarray, outputs: np.ndarray) -> None:
    """Writes each member's matrix times its inputs, plus its bias if `bias_start` is not negative."""
    shape = outputs.shape[1], inputs.shape[1]
    for member in range(len(outputs)):
        row, x = unit_stride(weights[member]), inputs[member]
        matrix = row[start : start + shape[0] * shape[1]].reshape(shape)
        for out in range(shape[0]):
            total = dot(matrix, out, x)
            if bias_start >= 0:
                total += row[bias_start + out]
            outputs[member, out] = total
