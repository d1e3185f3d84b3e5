"""Observations become float32, clipped and normalized or not. What is not finite becomes NaN."""

from math import prod

import numpy as np
from jaxtyping import Shaped
from numba import float32, float64, types, uint8, void

from hebbes.compilation import njit

CLIP = np.float32(10)
DTYPES = {np.dtype(np.float32): float32, np.dtype(np.float64): float64, np.dtype(np.uint8): uint8}
_ROWS = [types.Array(kind, 2, "C", readonly=True) for kind in DTYPES.values()]
_OUTPUTS, _STATISTIC = float32[:, ::1], types.Array(float32, 1, "C", readonly=True)


def make_rows(observations: Shaped[np.ndarray, "members ..."]) -> Shaped[np.ndarray, "members values"]:
    """The observations as contiguous rows of a type that the kernels take."""
    known = observations if observations.dtype in DTYPES else observations.astype(np.float64)
    return np.ascontiguousarray(known).reshape(len(known), prod(known.shape[1:]))


@njit([void(rows, _OUTPUTS) for rows in _ROWS], nogil=True, cache=True)
def plain_kernel(observations: np.ndarray, outputs: np.ndarray) -> None:
    """Writes the observations as float32."""
    for member in range(len(outputs)):
        row, output = observations[member], outputs[member]
        for i in range(output.size):
            x = np.float32(row[i])
            output[i] = x + np.float32(0) * x  # infinity becomes NaN


# error_model="numpy": a branch for division by zero would prevent vectorization
@njit([void(rows, _STATISTIC, _STATISTIC, _OUTPUTS) for rows in _ROWS], nogil=True, cache=True, error_model="numpy")
def normalized_kernel(observations: np.ndarray, mean: np.ndarray, std: np.ndarray, outputs: np.ndarray) -> None:
    """Writes clip((x - mean) / std, -CLIP, CLIP)."""
    for member in range(len(outputs)):
        row, output = observations[member], outputs[member]
        for i in range(output.size):
            x = np.float32(row[i])
            output[i] = min(max((x - mean[i]) / std[i], -CLIP), CLIP) + np.float32(0) * x
