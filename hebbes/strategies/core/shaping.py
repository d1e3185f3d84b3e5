"""Fitness shaping: turns fitness into utilities, the weights of the noise in one step.

Every function maps fitness of shape (members,), higher is better, NaN for a failed member, to utilities of that shape.
Where values count, a failed member is as bad as the worst that finished. Where ranks count, it ranks below all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.option import option
from hebbes.strategies.core.selection import all_tie

Shaping: TypeAlias = Callable[[Float64[np.ndarray, " members"]], Float64[np.ndarray, " members"]]


def centered_rank(fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
    """Ranks in [-0.5, 0.5]; ties share their mean rank, failed members rank last (Salimans et al. 2017, sec. 2.1)."""
    ranks = np.arange(len(fitness) - 1.0, -1.0, -1.0)
    return assign_by_rank(fitness, ranks) / (len(fitness) - 1) - 0.5


def centered_rank_normalized(fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
    """Centered ranks divided by their standard deviation, as in Najarro & Risi's code; all zero if all members tie.

    The deviation divides by n, as theirs does. For 200 untied members this is 3.45 times `centered_rank`.
    """
    ranks = centered_rank(fitness)
    deviation = ranks.std()
    return ranks / deviation if deviation > 0 else ranks


def raw(fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
    """The fitness itself; all zero if every member failed.

    An offset that all members share is kept. It cancels within antithetic pairs.
    """
    failed = np.isnan(fitness)
    return np.where(failed, 0.0 if failed.all() else np.nanmin(fitness), fitness)


def linear(fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
    """Fitness mapped linearly onto [-0.5, 0.5]; all zero if all members tie."""
    halves = raw(fitness) / 2  # a range may be too wide for a float
    low, high = halves.min(), halves.max()
    return (halves - low) / (high - low) - 0.5 if high > low else np.zeros(len(fitness))


def z_score(fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
    """Fitness minus its mean, over its standard deviation; all zero if all members tie, or if there is only one.

    The deviation divides by n - 1, as that of es-torch's shaping `normalized` does.
    """
    values = linear(fitness)  # same z-scores, without overflow, and exactly zero if all members tie
    if not values.any():
        return values
    return (values - values.mean()) / values.std(ddof=1)


def assign_by_rank(
    fitness: Float64[np.ndarray, " members"], values: Float64[np.ndarray, " members"]
) -> Float64[np.ndarray, " members"]:
    """Each member's value by its rank, `values` being listed from the best; ties share their mean, failed rank last."""
    costs = np.where(np.isnan(fitness), np.inf, -fitness)
    _, group, counts = np.unique(costs, return_inverse=True, return_counts=True)
    starts = np.cumsum(counts) - counts
    return (np.add.reduceat(values, starts) / counts)[group]


def compute_elite_weights(
    fitness: Float64[np.ndarray, " members"], size: int, kind: str = "log"
) -> Float64[np.ndarray, " members"]:
    """Weights of the `size` best members, which sum to 1: "equal", or "log", log((size + 1) / rank), which falls.

    Members that tie share their weights. Failed members have none. All weights are zero if all members tie or failed.
    """
    if all_tie(fitness):
        return np.zeros(len(fitness))
    ranks = np.arange(1, len(fitness) + 1)
    falling = np.log((size + 1) / ranks) if kind == "log" else np.ones(len(fitness))
    weights = np.where(np.isnan(fitness), 0.0, assign_by_rank(fitness, np.where(ranks <= size, falling, 0.0)))
    total = weights.sum()
    return weights / total if total > 0 else weights


def _center(weights: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
    """Weights minus their mean; exactly zero if all are equal, however the mean is rounded."""
    shifted = weights - weights[0]
    return shifted - shifted.mean()


def nes_utilities(fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
    """max(0, ln(n/2 + 1) - ln(rank)) over their sum, minus 1/n (Wierstra et al. 2014, JMLR 15, sec. 3.1; "log-rank").

    Ties share the mean of their utilities, so that the utilities sum to zero and are all zero if all members tie.
    pytorch-es gives ties the best of their ranks.
    """
    n = len(fitness)
    weights = np.maximum(0.0, np.log(n / 2 + 1) - np.log(np.arange(1, n + 1)))
    return _center(assign_by_rank(fitness, weights / weights.sum()))


def top_k(fitness: Float64[np.ndarray, " members"], share: float = 0.5) -> Float64[np.ndarray, " members"]:
    """1/k - 1/n for the best k of n members and -1/n for the others, so that the utilities sum to zero.

    k is `share` times n, rounded, at least 1 and at most n - 1. Ties share the mean of their utilities.
    """
    n = len(fitness)
    k = min(max(1, round(share * n)), n - 1)
    return _center(assign_by_rank(fitness, np.where(np.arange(n) < k, 1 / k, 0.0)))


SHAPINGS: dict[str, Shaping] = {
    "centered_rank": centered_rank,
    "centered_rank_normalized": centered_rank_normalized,
    "z_score": z_score,
    "nes_utilities": nes_utilities,
    "linear": linear,
    "raw": raw,
    "top_k": top_k,
}


@dataclass(frozen=True)
class ShapingSettings:
    """The choice of the shaping."""

    fitness_shaping: str = option("centered_rank", "how fitness becomes utilities", choices=tuple(SHAPINGS))
    top_share: float = option(
        0.5,
        "fraction of the members that the shaping top_k selects",
        range="in (0, 1)",
        needs={"fitness_shaping": ("top_k",)},
    )

    def shape(self, fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
        """The utilities of this fitness."""
        if self.fitness_shaping == "top_k":
            return top_k(fitness, self.top_share)
        return SHAPINGS[self.fitness_shaping](fitness)
