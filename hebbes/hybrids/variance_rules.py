"""Variance rules of AES-RL: a running variance that each individual updates after it has moved the mean.

Lee et al. 2020, arXiv 2012.05417; equations from their code, KyunghyunLee/aes-rl, core/population.py. With the mean
before and after the move, mu and mu', for each parameter:

    s2' = s2 + ((z - mu)(z - mu') - s2) / n

A rule maps the share p of the mean rule to n, over how many individuals the variance averages.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64

MIN_SHARE = 1e-3
"""An individual that has moved the mean by a smaller share does not change the variance."""
MIN_VARIANCE = 1e-5
"""Floor of the variance of each parameter."""

VarianceRule: TypeAlias = Callable[[float, int], float]


def fixed(p: float, window: int) -> float:
    """n = window."""
    return window


def adaptive(p: float, window: int) -> float:
    """n = max(1 / p - 1, 1). Where p is 1 / k for the k-th individual, this gives the sample variance of all k."""
    return max(1 / p - 1, 1.0)


VARIANCE_RULES: dict[str, VarianceRule] = {"fixed": fixed, "adaptive": adaptive}


def update_variance(
    variance: Float64[np.ndarray, " params"],
    from_old_mean: Float64[np.ndarray, " params"],
    from_new_mean: Float64[np.ndarray, " params"],
    n: float,
) -> Float64[np.ndarray, " params"]:
    """The new variance, from the individual's distances to the mean before and after its move."""
    return np.maximum(variance + (from_old_mean * from_new_mean - variance) / n, MIN_VARIANCE)
