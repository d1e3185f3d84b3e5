"""Observations as policies take them: float32, and normalized if the buffers hold statistics."""

from math import prod

import numpy as np
from jaxtyping import Float32, Shaped

from hebbes.contracts.policy import Buffers
from hebbes.policies import kernels


def normalize_observations(
    observations: Shaped[np.ndarray, "members ..."], buffers: Buffers
) -> Float32[np.ndarray, "members ..."]:
    """A new float32 array: clip((x - mean) / std, -10, 10) if the buffers hold statistics, else x.

    The statistics are "observation_mean" and "observation_std" (> 0), each of one observation's shape. Infinite values
    become NaN: neither the clip nor a later tanh may hide them from the episode loop. All is float32: where the mean is
    more than some 10,000 standard deviations, as of a clock that starts late, digits of the difference are lost.
    """
    shape = observations.shape
    outputs = np.empty((shape[0], prod(shape[1:])), np.float32)
    rows = kernels.observations.make_rows(observations)
    if "observation_mean" not in buffers:
        kernels.observations.plain_kernel(rows, outputs)
        return outputs.reshape(shape)
    mean, std = buffers["observation_mean"], buffers["observation_std"]
    if not mean.shape == std.shape == shape[1:]:
        raise ValueError(f"observation_mean, observation_std: shapes {mean.shape}, {std.shape}, expected {shape[1:]}")
    mean, std = (each.astype(np.float32, copy=False).ravel() for each in (mean, std))
    kernels.observations.normalized_kernel(rows, mean, std, outputs)
    return outputs.reshape(shape)
