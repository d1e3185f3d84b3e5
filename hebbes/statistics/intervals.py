"""Evaluation statistics of returns, with confidence intervals from the bootstrap.

Definitions: Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice" (arXiv
2108.13264), and their library rliable 1.2.0. We do not depend on it, because it is hardly maintained (last release
2024) and uses NumPy's global generator. The interquartile mean (IQM) is the mean without the lowest and the highest
quarter. The bootstrap draws as many units as there are, with replacement.

The meaning of an interval depends on the units:

- One policy file: the units are episodes. The interval shows the noise of the evaluation only: how the statistic of
  these weights would vary with other episodes.
- Several files of one method, trained with different seeds: the units are the runs, each with the mean of its episodes.
  The interval shows the noise of training: how the statistic would vary with other training seeds.

rliable's strata are tasks, and we have one task. The seeds of an evaluation are not strata: an episode depends only on
its seed and its number, so that all episodes are equal draws. If each seed were a stratum, the interval would be too
narrow, and with one episode for each seed it would have no width.

Departure: our median is over the units. rliable's is over tasks, and with one task it is the mean.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.statistics.table import format_number

CONFIDENCE = 95  # %
RESAMPLES = 10_000
_BATCH_ELEMENTS = 1_000_000  # resampled units in memory at once: 8 MB per array

StatisticsFunction: TypeAlias = Callable[..., Sequence[Float64[np.ndarray, " resamples"]]]
"""Maps resamples to the values of some statistics. It gets the indices of the drawn units, an array of
(resamples, units) for each kind of units."""


@dataclass(frozen=True)
class Estimate:
    """A statistic and its 95 % percentile interval from the bootstrap (Efron 1979); NaN where unknown.

    One unit says nothing about others, so that its interval is unknown.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """For people: 711 [690, 730]; 711 if the interval is unknown."""
        value, low, high = map(format_number, (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]" if isfinite(self.low) else value


UNKNOWN = Estimate(nan, nan, nan)


@dataclass(frozen=True)
class Summary:
    """Statistics over units. All are NaN if a unit failed, because a mean over the others would look too good."""

    mean: Estimate
    iqm: Estimate
    """Interquartile mean. It equals the mean for fewer than four units."""
    median: Estimate
    std: float
    """Sample standard deviation (ddof 1). NaN for a single unit, of which the spread is unknown."""
    minimum: float
    maximum: float
    failed: int
    """Number of units whose return is not finite."""
    units: int
    """Number of episodes, or of runs."""

    def __str__(self) -> str:
        """One line for people, in which the units are called episodes."""
        if self.failed:
            return f"{self.failed} of {self.units} episodes failed"
        episodes = f"{self.units} episode{'s' * (self.units > 1)}"
        return (
            f"mean {self.mean}, IQM {self.iqm}, median {self.median}, std {format_number(self.std)}, "
            f"min {format_number(self.minimum)}, max {format_number(self.maximum)} over {episodes}"
        )


def summarize(returns: Float64[np.ndarray, "*units"]) -> Summary:
    """Statistics of the returns of all units in an array of any shape, such as episodes; ValueError if it is empty."""
    if returns.size == 0:
        raise ValueError(f"returns must be those of at least one unit, not of shape {returns.shape}")
    failed = int(np.count_nonzero(~np.isfinite(returns)))
    if failed:
        return Summary(UNKNOWN, UNKNOWN, UNKNOWN, nan, nan, nan, failed=failed, units=returns.size)
    pooled = returns.ravel()
    mean, iqm, median = estimate_intervals(lambda drawn: _compute_averages(pooled[drawn]), [pooled.size])
    std = float(returns.std(ddof=1)) if returns.size > 1 else nan
    low, high = float(returns.min()), float(returns.max())
    return Summary(mean, iqm, median, std, low, high, failed=0, units=returns.size)


def estimate_intervals(compute_statistics: StatisticsFunction, counts: Sequence[int]) -> list[Estimate]:
    """The statistics of all units, with their bootstrap intervals; `counts` has the number of each kind of units.

    Units of several kinds are drawn independently of each other. The same units always give the same intervals. They
    are NaN if there is only one of each kind.
    """
    values = compute_statistics(*(np.arange(count)[np.newaxis] for count in counts))
    if max(counts) == 1:
        return [Estimate(float(value[0]), nan, nan) for value in values]
    rng = make_generator(0, Purpose.BOOTSTRAP)
    batch = max(1, _BATCH_ELEMENTS // sum(counts))
    sizes = [min(batch, RESAMPLES - start) for start in range(0, RESAMPLES, batch)]
    resampled = np.hstack(
        [compute_statistics(*(rng.integers(count, size=(size, count)) for count in counts)) for size in sizes]
    )
    tail = (100 - CONFIDENCE) / 2
    lows, highs = np.percentile(resampled, [tail, 100 - tail], axis=1)
    return [
        Estimate(float(value[0]), float(low), float(high)) for value, low, high in zip(values, lows, highs, strict=True)
    ]


def _compute_averages(
    returns: Float64[np.ndarray, "resamples units"],
) -> list[Float64[np.ndarray, " resamples"]]:
    """Mean, interquartile mean and median of each resample."""
    return [returns.mean(axis=1), compute_iqm(returns), np.median(returns, axis=1)]


def compute_iqm(values: Float64[np.ndarray, "*rows values"]) -> Float64[np.ndarray, "*rows"]:
    """Interquartile mean along the last axis, as `scipy.stats.trim_mean(values, 0.25)`, whose import takes a second."""
    number = values.shape[-1]
    cut = number // 4
    middle = np.partition(values, (cut, number - cut - 1))[..., cut : number - cut]
    return np.where(np.isnan(values).any(axis=-1), nan, middle.mean(axis=-1))


def make_json_number(value: float) -> float | None:
    """The value, or None if JSON has no literal for it (NaN, infinities)."""
    return value if isfinite(value) else None


def make_json_estimate(name: str, estimate: Estimate) -> dict[str, object]:
    """The statistic under its name, and its interval under `<name>_ci`."""
    return {
        name: make_json_number(estimate.value),
        f"{name}_ci": [make_json_number(estimate.low), make_json_number(estimate.high)],
    }


def make_json_summary(summary: Summary) -> Mapping[str, object]:
    """The statistics under the names that `evaluate_static.py --json` prints."""
    return {
        **make_json_estimate("mean", summary.mean),
        **make_json_estimate("iqm", summary.iqm),
        **make_json_estimate("median", summary.median),
        "std": make_json_number(summary.std),
        "min": make_json_number(summary.minimum),
        "max": make_json_number(summary.maximum),
    }
