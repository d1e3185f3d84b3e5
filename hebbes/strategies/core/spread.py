"""The spread of a search's noise: whether it still changes weights, and how far the mean moves in units of it."""

import numpy as np
from jaxtyping import Float32, Float64

MAX_WEIGHT = 1e30
"""A search with larger weights diverges. The library `cmaes` stops at 1e32, float32 ends at 3e38."""


def check_spread(mean: Float32[np.ndarray, " params"], deviation: float | Float64[np.ndarray, " params"]) -> None:
    """Raises FloatingPointError if the noise no longer changes any float32 weight, or if a value is too large."""
    weight, sigma = np.abs(mean).max(), np.max(deviation)
    if not weight + sigma < MAX_WEIGHT:  # NaN too
        raise FloatingPointError(
            f"the search diverges, with weights up to {weight:.3g} and sigma up to {sigma:.3g}: a learning rate, "
            "sigma or the fitness may be too large"
        )
    if (mean + np.asarray(deviation, np.float32) == mean).all():
        raise FloatingPointError(
            f"noise of sigma {sigma:.3g} no longer changes any float32 weight (the largest is {weight:.3g}): the "
            "search has converged, or a learning rate is too large"
        )


def compute_move_metrics(
    sigma: float,
    deviation: float | Float64[np.ndarray, " params"],
    step: Float64[np.ndarray, " params"],
    mean: Float64[np.ndarray, " params"],
) -> dict[str, float]:
    """Metrics of a generation, by the names of `hebbes.recording.metrics`.

    Args:
        sigma: one number for the noise.
        deviation: its standard deviation, that of each weight if they differ.
        step: what the generation has added to the mean.
        mean: the mean after it.
    """
    return {
        "sigma": float(sigma),
        "update_norm": float(np.linalg.norm(step)),
        "mean_norm": float(np.linalg.norm(mean)),
        "update_over_sigma": float(np.sqrt(np.square(step / deviation).mean())),
    }
