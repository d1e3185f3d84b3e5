"""Comparison of two policies, or of two methods, on common random numbers: all played from the same start states.

The probability of improvement is that of rliable (Agarwal et al. 2021, arXiv 2108.13264): P(X > Y) + P(X = Y) / 2 over
all pairs of a unit of one side and a unit of the other. 0.5 means that neither is better.

- Two policies: the units are episodes. The bootstrap draws start states. Each brings the episodes of both policies from
  it. rliable draws the episodes of the two independently, because its runs share no start states. If the same start
  states are hard for both policies, the interval of the mean difference is narrower than that from two separate means.
- Two methods: the units are runs, each with the mean of its episodes, as in rliable. The bootstrap draws the runs of
  each method independently. For the mean difference it draws the common start states too.
"""

from dataclasses import dataclass
from math import fsum, nan

import numpy as np
from jaxtyping import Float64, Int

from hebbes.statistics.intervals import UNKNOWN, Estimate, estimate_intervals


@dataclass(frozen=True)
class Comparison:
    """How the first policy compares with the second. Both estimates are NaN if an episode of either failed."""

    probability_of_improvement: Estimate
    """Probability that an episode, or a run, of the first has the higher return; ties count half."""
    mean_difference: Estimate
    """Mean return of the first minus that of the second."""


def compare(
    first: Float64[np.ndarray, "*states"],
    second: Float64[np.ndarray, "*states"],
) -> Comparison:
    """The comparison of returns of any equal shape, whose entries come from the same start states."""
    if first.shape != second.shape or first.size == 0:
        raise ValueError(f"returns must be of the same start states, not of shapes {first.shape} and {second.shape}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return Comparison(UNKNOWN, UNKNOWN)

    one, other = first.ravel(), second.ravel()
    order = np.argsort(other)
    fewer, as_many = (np.searchsorted(other[order], one, side=side) for side in ("left", "right"))

    def compute_statistics(drawn: Int[np.ndarray, "resamples states"]) -> list[Float64[np.ndarray, " resamples"]]:
        counts = _count_draws(drawn)
        below = np.pad(np.cumsum(counts[:, order], axis=1), ((0, 0), (1, 0)))  # draws of the k lowest of the other
        wins = counts * (below[:, fewer] + below[:, as_many]) / 2
        return [wins.sum(axis=1) / one.size**2, (one - other)[drawn].mean(axis=1)]

    return Comparison(*estimate_intervals(compute_statistics, [one.size]))


def compare_methods(
    first: Float64[np.ndarray, "runs *states"],
    second: Float64[np.ndarray, "other_runs *states"],
) -> Comparison:
    """The comparison of the runs of two methods, each of which was played from the same start states.

    With a single run of each it is that of two policies, because one run says nothing about others of its method. With
    a single run of only one of them it has no intervals.
    """
    if len(first) == len(second) == 1:
        return compare(first[0], second[0])
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return Comparison(UNKNOWN, UNKNOWN)
    one, other = first.reshape(len(first), -1), second.reshape(len(second), -1)
    # exact sums, because runs tie that have the same returns in another order
    scores, other_scores = ([fsum(run / len(run)) for run in runs] for runs in (one, other))
    wins = np.greater.outer(scores, other_scores) + np.equal.outer(scores, other_scores) / 2

    def compute_statistics(
        runs: Int[np.ndarray, "resamples runs"],
        other_runs: Int[np.ndarray, "resamples other_runs"],
        states: Int[np.ndarray, "resamples states"],
    ) -> list[Float64[np.ndarray, " resamples"]]:
        run_counts, other_counts, state_counts = map(_count_draws, (runs, other_runs, states))
        difference = run_counts @ one / len(one) - other_counts @ other / len(other)
        return [
            ((run_counts @ wins) * other_counts).sum(axis=1) / wins.size,
            (difference * state_counts).sum(axis=1) / one.shape[1],
        ]

    found = estimate_intervals(compute_statistics, [len(first), len(second), one.shape[1]])
    if min(len(first), len(second)) == 1:
        found = [Estimate(each.value, nan, nan) for each in found]
    return Comparison(*found)


def _count_draws(drawn: Int[np.ndarray, "resamples units"]) -> Float64[np.ndarray, "resamples units"]:
    """How often a resample has drawn each unit."""
    resamples, units = drawn.shape
    rows = units * np.arange(resamples)[:, np.newaxis]
    return np.bincount((rows + drawn).ravel(), minlength=drawn.size).reshape(drawn.shape).astype(np.float64)
