"""Evaluation statistics: what returns say about a policy or a method, and how sure that is.

Definitions: Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice" (arXiv
2108.13264), and its library rliable 1.2.0, which is not kept well enough to depend on (last release 2024; draws from
numpy's global generator). The interquartile mean (IQM) is the mean without the lowest and the highest quarter. The
stratified bootstrap draws as many units from every stratum as it has, with replacement, never across strata.

What the units and the strata are decides what an interval says:

- One policy file: the units are episodes, the strata are the evaluation's seeds. The interval is the evaluation's noise
  alone: where the figure of these very weights lies, had they played other episodes.
- Several files of one method, trained from different seeds: the units are the runs, each with the mean of its episodes,
  in one stratum, the environment. The interval is the noise of training: where the figure lies, had other seeds been
  trained.

Departure: the median is that of the units; rliable's is the median over tasks, which with one task is the mean.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64, Int

from hebbes.contracts.randomness import Purpose, stream
from hebbes.statistics.table import number

CONFIDENCE = 95  # %
RESAMPLES = 10_000
_BATCH_ELEMENTS = 1_000_000  # resampled units held in memory at once: 8 MB an array

Figures: TypeAlias = Callable[
    [Int[np.ndarray, "resamples strata units"]],
    Sequence[Float64[np.ndarray, " resamples"]],
]
"""Figures of resamples, each given by the numbers of the units drawn from each stratum."""


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval from the stratified bootstrap, by percentiles (Efron 1979); NaN where unknown."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """As a person reads it: 711 [690, 730]."""
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]" if isfinite(self.value) else "-"


UNKNOWN = Estimate(nan, nan, nan)


@dataclass(frozen=True)
class Summary:
    """Figures over units; all of them NaN when one failed, because a mean over the rest would flatter."""

    mean: Estimate
    iqm: Estimate
    """Interquartile mean; the mean where there are fewer than four units."""
    median: Estimate
    std: float
    """Of the sample (ddof 1); 0 for a single unit, where the spread is unknown."""
    minimum: float
    maximum: float
    failed: int
    """Units whose return is not finite."""
    units: int
    """Episodes, or runs."""

    def __str__(self) -> str:
        """One line for a person, about episodes."""
        if self.failed:
            return f"{self.failed} of {self.units} episodes failed"
        return (
            f"mean {self.mean}, IQM {self.iqm}, median {self.median}, std {number(self.std)}, "
            f"min {number(self.minimum)}, max {number(self.maximum)} over {self.units} episodes"
        )


def summarize_strata(returns: Float64[np.ndarray, "strata units"], rng: np.random.Generator) -> Summary:
    """Summarises the returns of at least one unit; `rng` draws the resamples."""
    if returns.ndim != 2 or returns.size == 0:
        raise ValueError(f"returns must be rows of at least one unit, not of shape {returns.shape}")
    failed = int(np.count_nonzero(~np.isfinite(returns)))
    if failed:
        return Summary(UNKNOWN, UNKNOWN, UNKNOWN, nan, nan, nan, failed=failed, units=returns.size)
    mean, iqm, median = estimates(lambda drawn: _averages(taken(returns, drawn)), returns.shape, rng)
    return Summary(
        mean=mean,
        iqm=iqm,
        median=median,
        std=float(returns.std(ddof=1)) if returns.size > 1 else 0.0,
        minimum=float(returns.min()),
        maximum=float(returns.max()),
        failed=0,
        units=returns.size,
    )


def summarize(returns: Float64[np.ndarray, "*seeds episodes"]) -> Summary:
    """Statistics of episodes of one seed or several; the same returns always give the same interval."""
    return summarize_strata(np.atleast_2d(returns), stream(0, Purpose.BOOTSTRAP))


def taken(
    returns: Float64[np.ndarray, "strata units"], drawn: Int[np.ndarray, "resamples strata units"]
) -> Float64[np.ndarray, "resamples strata units"]:
    """The returns of the units drawn."""
    return returns[np.arange(len(returns))[:, np.newaxis], drawn]


def estimates(figures: Figures, shape: tuple[int, ...], rng: np.random.Generator) -> list[Estimate]:
    """The figures of the units as they are, with their bootstrap intervals; `shape` is (strata, units)."""
    strata, units = shape
    values = figures(np.tile(np.arange(units), (1, strata, 1)))
    batch = max(1, _BATCH_ELEMENTS // (strata * units))
    sizes = [min(batch, RESAMPLES - start) for start in range(0, RESAMPLES, batch)]
    resampled = np.hstack([figures(rng.integers(units, size=(size, strata, units))) for size in sizes])
    tail = (100 - CONFIDENCE) / 2
    lows, highs = np.percentile(resampled, [tail, 100 - tail], axis=1)
    return [
        Estimate(float(value[0]), float(low), float(high)) for value, low, high in zip(values, lows, highs, strict=True)
    ]


def _averages(returns: Float64[np.ndarray, "resamples strata units"]) -> list[Float64[np.ndarray, " resamples"]]:
    """Mean, interquartile mean and median of each resample."""
    from scipy.stats import trim_mean  # takes longer to import than all the rest

    pooled = returns.reshape(len(returns), -1)
    return [pooled.mean(axis=1), trim_mean(pooled, 0.25, axis=1), np.median(pooled, axis=1)]


def json_number(value: float) -> float | None:
    """The value, or None where JSON has no literal for it (NaN, infinities)."""
    return value if isfinite(value) else None


def json_estimate(name: str, estimate: Estimate) -> dict[str, object]:
    """The figure under its name, and its interval under `<name>_ci`."""
    return {name: json_number(estimate.value), f"{name}_ci": [json_number(estimate.low), json_number(estimate.high)]}


def as_json(figures: Summary) -> Mapping[str, object]:
    """The figures under the names that `evaluate_static.py --json` prints."""
    return {
        **json_estimate("mean", figures.mean),
        **json_estimate("iqm", figures.iqm),
        **json_estimate("median", figures.median),
        "std": json_number(figures.std),
        "min": json_number(figures.minimum),
        "max": json_number(figures.maximum),
    }
