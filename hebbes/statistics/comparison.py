"""Comparison of two policies on common random numbers: both played from the same start states.

The probability of improvement is that of rliable (Agarwal et al. 2021, arXiv 2108.13264): P(X > Y) + P(X = Y) / 2 over
all pairs of an episode of one policy and an episode of the other within a seed, averaged over the seeds. Within a seed
it is Mann and Whitney's U divided by the number of pairs. 0.5 means that neither policy is better.

The bootstrap draws start states. Each brings the episodes of both policies from it. rliable draws the episodes of the
two independently, because its runs share no start states. If the same start states are hard for both policies, the
interval of the mean difference is narrower than that from two separate means.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from hebbes.statistics.intervals import UNKNOWN, Estimate, estimate_intervals, select_units


@dataclass(frozen=True)
class Comparison:
    """How the first policy compares with the second. Both estimates are NaN if an episode of either failed."""

    probability_of_improvement: Estimate
    """Probability that an episode of the first has the higher return; ties count half."""
    mean_difference: Estimate
    """Mean return of the first minus that of the second."""


def compare(
    first: Float64[np.ndarray, "seeds episodes"],
    second: Float64[np.ndarray, "seeds episodes"],
    rng: np.random.Generator,
) -> Comparison:
    """The comparison of returns whose entries (s, k) come from the same start state; `rng` draws the resamples."""
    if first.shape != second.shape or first.ndim != 2 or first.size == 0:
        raise ValueError(
            f"returns must be (seeds, episodes) of the same start states, not {first.shape} and {second.shape}"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return Comparison(UNKNOWN, UNKNOWN)

    def compute_statistics(
        drawn: Int[np.ndarray, "resamples seeds episodes"],
    ) -> list[Float64[np.ndarray, " resamples"]]:
        one, other = select_units(first, drawn), select_units(second, drawn)
        return [_compute_probability(one, other), (one - other).mean(axis=(1, 2))]

    return Comparison(*estimate_intervals(compute_statistics, first.shape, rng))


def _compute_probability(
    one: Float64[np.ndarray, "resamples seeds episodes"], other: Float64[np.ndarray, "resamples seeds episodes"]
) -> Float64[np.ndarray, " resamples"]:
    from scipy.stats import mannwhitneyu  # slow to import

    statistic = mannwhitneyu(one, other, axis=2, method="asymptotic").statistic
    return statistic.mean(axis=1) / one.shape[2] ** 2
