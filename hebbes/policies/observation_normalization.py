"""Observations as policies take them: float32, and normalized if the buffers hold statistics."""

import numpy as np
from jaxtyping import Float32, Shaped

from hebbes.contracts.policy import Buffers
from hebbes.policies import kernels


def normalize_observations(
    observations: Shaped[np.ndarray, "members ..."], buffers: Buffers
) -> Float32[np.ndarray, "members ..."]:
    """A new float32 array: clip((x - mean) / std, -10, 10) if the buffers hold statistics, else x.

    The statistics are "observation_mean" and "observation_std" (> 0), each of one observation's shape. Infinite values
    become NaN: neither the clip nor a later tanh may hide them from the episode loop.
    """
    shape = observations.shape
    outputs = np.empty((len(observations), int(np.prod(shape[1:]))), np.float32)
    rows = observations if observations.dtype in kernels.observations.DTYPES else observations.astype(np.float32)
    rows = np.ascontiguousarray(rows).reshape(outputs.shape)
    if "observation_mean" not in buffers:
        kernels.observations.plain_kernel(rows, outputs)
        return outputs.reshape(shape)
    mean, std = buffers["observation_mean"], buffers["observation_std"]
    if not mean.shape == std.shape == shape[1:]:
        raise ValueError(f"observation_mean, observation_std: shapes {mean.shape}, {std.shape}, expected {shape[1:]}")
    kernels.observations.normalized_kernel(
        rows, mean.astype(np.float32).ravel(), std.astype(np.float32).ravel(), outputs
    )
    return outputs.reshape(shape)
