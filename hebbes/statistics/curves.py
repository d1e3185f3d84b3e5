"""Curves over several runs: on common points, with their pointwise averages, and performance profiles.

A performance profile is the share of runs whose score is above a threshold, over all thresholds (Agarwal et al. 2021,
arXiv 2108.13264). All intervals are pointwise, from the bootstrap over runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64, Int

from hebbes.statistics.intervals import compute_iqm, estimate_intervals

MAX_POINTS = 200
"""More points than this are not drawn, because each has an interval of its own."""


@dataclass(frozen=True)
class RunCurve:
    """A metric of one run. `x` increases, and `y` has no NaN."""

    x: Float64[np.ndarray, " points"]
    y: Float64[np.ndarray, " points"]
    gaps: Float64[np.ndarray, " gaps"] = field(default_factory=lambda: np.empty(0))
    """Values of `x` at which there is no `y`, so that no line may be drawn across them."""


@dataclass(frozen=True)
class Curve:
    """A curve, and its 95 % interval at each point."""

    x: Float64[np.ndarray, " points"]
    value: Float64[np.ndarray, " points"]
    low: Float64[np.ndarray, " points"]
    high: Float64[np.ndarray, " points"]


def interpolate_runs(
    runs: Sequence[RunCurve],
) -> tuple[Float64[np.ndarray, " points"], Float64[np.ndarray, "runs points"]]:
    """Common points of several runs, and their values there, by linear interpolation; ValueError if there are none.

    The points are those of all runs within the range that all runs have, or as many as `MAX_POINTS` at equal distances
    if there are more.
    """
    low, high = max(run.x[0] for run in runs), min(run.x[-1] for run in runs)
    if low > high:
        raise ValueError(f"the runs have no range in common: one begins at {low:g}, and another ends at {high:g}")
    points = np.unique(np.concatenate([run.x for run in runs]))
    points = points[(points >= low) & (points <= high)]
    if len(points) > MAX_POINTS:
        points = np.linspace(low, high, MAX_POINTS)
    return points, np.array([np.interp(points, run.x, run.y) for run in runs])


def average_runs(runs: Sequence[RunCurve], statistic: str) -> Curve:
    """The interquartile mean (`statistic` "iqm") or the mean of the runs at each point that `interpolate_runs` finds.

    A single run is its own average, without interval. ValueError if several have no such point.
    """
    if len(runs) == 1:
        (run,) = runs
        return Curve(run.x, run.y, *np.full((2, len(run.x)), np.nan))
    points, values = interpolate_runs(runs)
    return _estimate_points(points, values, compute_iqm if statistic == "iqm" else lambda drawn: drawn.mean(axis=1))


def compute_profile(scores: Float64[np.ndarray, " runs"], thresholds: Float64[np.ndarray, " points"]) -> Curve:
    """The share of the scores that are above each threshold."""
    is_above = (scores[:, np.newaxis] > thresholds).astype(np.float64)
    return _estimate_points(thresholds, is_above, lambda drawn: drawn.mean(axis=1))


def _estimate_points(
    points: Float64[np.ndarray, " points"],
    values: Float64[np.ndarray, "runs points"],
    compute: Callable[[Float64[np.ndarray, "resamples runs"]], Float64[np.ndarray, " resamples"]],
) -> Curve:
    def compute_statistics(drawn: Int[np.ndarray, "resamples runs"]) -> list[Float64[np.ndarray, " resamples"]]:
        return [compute(column[drawn]) for column in values.T]

    found = estimate_intervals(compute_statistics, [len(values)])
    value, low, high = np.array([[each.value, each.low, each.high] for each in found]).T
    return Curve(points, value, low, high)
