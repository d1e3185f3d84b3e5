"""Comparison of two policies that met the same start states.

The probability of improvement is rliable's (Agarwal et al. 2021, arXiv 2108.13264): P(X > Y) + P(X = Y) / 2 over all
pairs of an episode of one and an episode of the other within a seed, which is Mann and Whitney's U over the number of
pairs, averaged over the seeds. 0.5 says that neither is better.

The bootstrap draws start states, and with each the episodes of both policies, because they share it; rliable draws the
two apart, its runs have nothing in common. The mean difference is over start states met by both: where a hard start is
hard for both, its interval is narrower than two separate means would give. That is what common start states buy.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from hebbes.statistics.intervals import UNKNOWN, Estimate, estimates, taken


@dataclass(frozen=True)
class Comparison:
    """How one policy did beside another; both estimates NaN where an episode of either failed."""

    probability_of_improvement: Estimate
    """That the first does better than the second."""
    mean_difference: Estimate
    """Return of the first minus that of the second."""


def compare(
    first: Float64[np.ndarray, "seeds episodes"],
    second: Float64[np.ndarray, "seeds episodes"],
    rng: np.random.Generator,
) -> Comparison:
    """Compares returns whose entry (s, k) comes from the same start state; `rng` draws the resamples."""
    if first.shape != second.shape or first.ndim != 2 or first.size == 0:
        raise ValueError(
            f"returns must be (seeds, episodes) of the same start states, not {first.shape} and {second.shape}"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return Comparison(UNKNOWN, UNKNOWN)

    def figures(drawn: Int[np.ndarray, "resamples seeds episodes"]) -> list[Float64[np.ndarray, " resamples"]]:
        one, other = taken(first, drawn), taken(second, drawn)
        return [_probability(one, other), (one - other).mean(axis=(1, 2))]

    return Comparison(*estimates(figures, first.shape, rng))


def _probability(
    one: Float64[np.ndarray, "resamples seeds episodes"], other: Float64[np.ndarray, "resamples seeds episodes"]
) -> Float64[np.ndarray, " resamples"]:
    from scipy.stats import mannwhitneyu  # takes longer to import than all the rest

    statistic = mannwhitneyu(one, other, axis=2, method="asymptotic").statistic
    return statistic.mean(axis=1) / one.shape[2] ** 2
