"""Evaluation statistics: what the returns of some episodes say about a policy."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np
from jaxtyping import Float64
from scipy.stats import bootstrap

CONFIDENCE = 0.95
RESAMPLES = 10_000
_BATCH_ELEMENTS = 4_000_000  # resampled returns held in memory at once: 32 MB


@dataclass(frozen=True)
class Summary:
    """Figures over episodes; all of them NaN when an episode failed, because a mean over the rest would flatter."""

    mean: float
    std: float
    """Of the sample (ddof 1); 0 for a single episode, where the spread is unknown."""
    median: float
    minimum: float
    maximum: float
    ci_low: float
    """The 95 % bootstrap percentile interval of the mean (Efron 1979); the mean itself for a single episode."""
    ci_high: float
    failed: int
    """Episodes whose return is not finite."""
    episodes: int

    def __str__(self) -> str:
        """One line for a person."""
        if self.failed:
            return f"{self.failed} of {self.episodes} episodes failed"
        return (
            f"mean {self.mean:.2f} (95 % interval {self.ci_low:.2f} to {self.ci_high:.2f}), std {self.std:.2f}, "
            f"median {self.median:.2f}, min {self.minimum:.2f}, max {self.maximum:.2f} over {self.episodes} episodes"
        )


def summary(returns: Float64[np.ndarray, " episodes"], rng: np.random.Generator) -> Summary:
    """Summarises the returns of at least one episode; `rng` draws the resamples."""
    if returns.ndim != 1 or len(returns) == 0:
        raise ValueError(f"returns must be one row of at least one episode, not of shape {returns.shape}")
    failed = int(np.count_nonzero(~np.isfinite(returns)))
    if failed:
        return Summary(nan, nan, nan, nan, nan, nan, nan, failed=failed, episodes=len(returns))
    ci_low, ci_high = _mean_interval(returns, rng)
    return Summary(
        mean=float(returns.mean()),
        std=float(returns.std(ddof=1)) if len(returns) > 1 else 0.0,
        median=float(np.median(returns)),
        minimum=float(returns.min()),
        maximum=float(returns.max()),
        ci_low=ci_low,
        ci_high=ci_high,
        failed=0,
        episodes=len(returns),
    )


def _mean_interval(returns: Float64[np.ndarray, " episodes"], rng: np.random.Generator) -> tuple[float, float]:
    if len(returns) == 1:  # nothing to resample; scipy refuses it
        return float(returns[0]), float(returns[0])
    # Percentile, not scipy's default BCa, which divides by zero when all returns are equal.
    interval = bootstrap(
        (returns,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=max(1, _BATCH_ELEMENTS // len(returns)),
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=rng,
    ).confidence_interval
    return float(interval.low), float(interval.high)


def json_number(value: float) -> float | None:
    """The value, or None where JSON has no literal for it (NaN, infinities)."""
    return value if isfinite(value) else None


def as_json(figures: Summary) -> Mapping[str, float | None]:
    """The figures under the names that `evaluate_static.py --json` prints."""
    return {
        "mean": json_number(figures.mean),
        "std": json_number(figures.std),
        "median": json_number(figures.median),
        "min": json_number(figures.minimum),
        "max": json_number(figures.maximum),
        "ci_low": json_number(figures.ci_low),
        "ci_high": json_number(figures.ci_high),
    }
