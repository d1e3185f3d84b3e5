"""Fitness shaping: turns fitness into utilities that sum the population's noise into one step.

Every function maps fitness of shape (members,), higher is better, NaN for a failed member, to utilities of that shape.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64
from scipy.stats import rankdata

Shaping: TypeAlias = Callable[[Float64[np.ndarray, " members"]], Float64[np.ndarray, " members"]]


def centered_rank(fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
    """Ranks in [-0.5, 0.5]; ties share their mean rank, failed members rank last (Salimans et al. 2017, sec. 2.1)."""
    ordered = np.where(np.isnan(fitness), -np.inf, fitness)
    return (rankdata(ordered, method="average") - 1) / (len(fitness) - 1) - 0.5


def centered_rank_normalized(fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
    """Centred ranks divided by their standard deviation, as Najarro & Risi's code does; all zero if all members tie.

    For 200 untied members this is 3.45 times `centered_rank`.
    """
    ranks = centered_rank(fitness)
    deviation = ranks.std()
    return ranks / deviation if deviation > 0 else ranks


SHAPINGS: dict[str, Shaping] = {
    "centered_rank": centered_rank,
    "centered_rank_normalized": centered_rank_normalized,
}
