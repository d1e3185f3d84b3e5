"""Products of each member's matrices with its inputs, and the sum of products that all dense rows use."""

import numpy as np
from numba import int64, types, void

from hebbes.compilation import njit
from hebbes.policies.kernels.activations import activate
from hebbes.simd import unit_stride

_ROWS = types.Array(types.float32, 2, "A", readonly=True)
_INPUTS = types.Array(types.float32, 2, "C", readonly=True)
_OUTPUTS = types.Array(types.float32, 2, "C")
_TABLE = types.Array(types.int64, 2, "C", readonly=True)
REORDERED = {"contract", "reassoc", "nsz"}
"""Fast-math flags for vectorized sums, in the same order every time. NaN and infinity are kept."""


@njit(nogil=True, cache=True, fastmath=REORDERED)
def dot(matrix: np.ndarray, out: int, inputs: np.ndarray) -> np.float32:
    """Row `out` of a contiguous matrix times a vector. All layers of dense rows use it and add in one order."""
    total = np.float32(0)
    for i in range(len(inputs)):
        total += matrix[out, i] * inputs[i]
    return total


@njit(nogil=True, cache=True)
def _multiply(row: np.ndarray, start: int, bias_start: int, x: np.ndarray, outputs: np.ndarray) -> None:
    """Writes the product of a row's matrix at `start` and x, plus the bias if `bias_start` is not negative."""
    shape = len(outputs), len(x)
    matrix = row[start : start + shape[0] * shape[1]].reshape(shape)
    for out in range(shape[0]):
        total = dot(matrix, out, x)
        if bias_start >= 0:
            total += row[bias_start + out]
        outputs[out] = total


@njit(void(_ROWS, int64, int64, _INPUTS, _OUTPUTS), nogil=True, cache=True)
def linear_kernel(weights: np.ndarray, start: int, bias_start: int, inputs: np.ndarray, outputs: np.ndarray) -> None:
    """Writes each member's matrix times its inputs, plus its bias if `bias_start` is not negative."""
    for member in range(len(outputs)):
        _multiply(unit_stride(weights[member]), start, bias_start, inputs[member], outputs[member])


@njit(void(_ROWS, _TABLE, int64, _INPUTS, _OUTPUTS), nogil=True, cache=True)
def dense_kernel(
    weights: np.ndarray, places: np.ndarray, activation: int, inputs: np.ndarray, outputs: np.ndarray
) -> None:
    """Writes each member's outputs of layers in a chain, all in one call: calls take longer than small matrices.

    Rows of `places`: where a matrix starts, where its bias does or a negative number, number of outputs. The activation
    between them is a number of `ACTIVATIONS`.
    """
    activities = np.empty((2, max(places[:, 2].max(), inputs.shape[1])), np.float32)
    for member in range(len(outputs)):
        row, x = unit_stride(weights[member]), activities[0, : inputs.shape[1]]
        x[:] = inputs[member]
        for number in range(len(places)):
            start, bias_start, num_outputs = places[number]
            if number:
                activate(x, activation)
            y = activities[(number + 1) % 2, :num_outputs]
            _multiply(row, start, bias_start, x, y)
            x = y
        outputs[member] = x
