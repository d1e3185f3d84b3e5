"""Observations as policies take them: float32, and normalized if the buffers hold statistics."""

import numpy as np
from jaxtyping import Float32, Shaped
from numba import float32, float64, njit, types, uint8, void

from hebbes.contracts.policy import Buffers

CLIP = np.float32(10)
# Signatures are explicit, because Numba's cache can mix up signatures that processes compile at the same time.
_KINDS = {np.dtype(np.float32): float32, np.dtype(np.float64): float64, np.dtype(np.uint8): uint8}
_ROWS = [types.Array(kind, 2, "C", readonly=True) for kind in _KINDS.values()]
_OUTPUTS, _STATISTIC = float32[:, ::1], float32[::1]


@njit([void(rows, _OUTPUTS) for rows in _ROWS], nogil=True, cache=True)
def _plain_kernel(observations: np.ndarray, outputs: np.ndarray) -> None:
    for member in range(len(outputs)):
        row, output = observations[member], outputs[member]
        for i in range(output.size):
            x = np.float32(row[i])
            output[i] = x + np.float32(0) * x  # infinity becomes NaN


# error_model="numpy": a branch for division by zero would prevent vectorization
@njit([void(rows, _STATISTIC, _STATISTIC, _OUTPUTS) for rows in _ROWS], nogil=True, cache=True, error_model="numpy")
def _normalized_kernel(observations: np.ndarray, mean: np.ndarray, std: np.ndarray, outputs: np.ndarray) -> None:
    for member in range(len(outputs)):
        row, output = observations[member], outputs[member]
        for i in range(output.size):
            x = np.float32(row[i])
            output[i] = min(max((x - mean[i]) / std[i], -CLIP), CLIP) + np.float32(0) * x


def normalize_observations(
    observations: Shaped[np.ndarray, "members ..."], buffers: Buffers
) -> Float32[np.ndarray, "members ..."]:
    """A new float32 array: clip((x - mean) / std, -10, 10) if the buffers hold statistics, else x.

    The statistics are "observation_mean" and "observation_std" (> 0), each of one observation's shape. Infinite values
    become NaN: neither the clip nor a later tanh may hide them from the episode loop.
    """
    shape = observations.shape
    outputs = np.empty((len(observations), int(np.prod(shape[1:]))), np.float32)
    rows = observations if observations.dtype in _KINDS else observations.astype(np.float32)
    rows = np.ascontiguousarray(rows).reshape(outputs.shape)
    if "observation_mean" not in buffers:
        _plain_kernel(rows, outputs)
        return outputs.reshape(shape)
    mean, std = buffers["observation_mean"], buffers["observation_std"]
    if not mean.shape == std.shape == shape[1:]:
        raise ValueError(f"observation_mean, observation_std: shapes {mean.shape}, {std.shape}, expected {shape[1:]}")
    _normalized_kernel(rows, mean.astype(np.float32).ravel(), std.astype(np.float32).ravel(), outputs)
    return outputs.reshape(shape)
