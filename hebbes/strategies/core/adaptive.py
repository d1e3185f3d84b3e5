"""What strategies that adapt their own sigma share: settings, limits of memory and of float32, and figures.

The default number of members is equation 48 of Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772.
"""

from dataclasses import dataclass, field
from math import floor, log, sqrt

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.strategies.core.ranges import check_ranges

MAX_MATRIX_BYTES = 4 * 2**30
"""Memory that a full covariance and the temporaries of its update may take; beyond it a generation takes minutes."""
LEAST_MEMBERS = 4
"""Members with which these strategies still work."""
LARGEST = 1e30
"""Weights beyond this are a search that diverges: the library `cmaes` ends at 1e32, float32 at 3e38."""


class CovarianceTooLargeError(ValueError):
    """The policy has too many parameters for a full covariance."""


@dataclass(frozen=True)
class AdaptiveSettings:
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    popsize: int | None = field(
        default=None, metadata={"help": "members per generation, >= 4 (default: 4 + 3 ln of the number of parameters)"}
    )
    sigma: float = field(
        default=0.1, metadata={"help": "initial standard deviation of the noise on the weights; adapts itself"}
    )

    def __post_init__(self) -> None:
        if self.popsize is not None and self.popsize < LEAST_MEMBERS:
            raise ValueError(f"popsize must be >= {LEAST_MEMBERS}, or none for the default, got {self.popsize}")
        check_ranges(self, {"a finite number > 0": ("sigma",)})

    def members(self, num_params: int) -> int:
        """Members per generation: as set, or 4 + floor(3 ln num_params)."""
        return 4 + floor(3 * log(num_params)) if self.popsize is None else self.popsize


def check_memory(strategy: str, num_params: int, popsize: int, fixed: int, per_member: int = 0) -> None:
    """Refuses square float64 matrices that do not fit, so many and so many more a member.

    CovarianceTooLargeError where no popsize would help, else ValueError.
    """
    square = num_params**2 * 8
    needed = (fixed + per_member * popsize) * square
    if needed > MAX_MATRIX_BYTES:
        largest = (MAX_MATRIX_BYTES // square - fixed) // per_member if per_member else 0
        if largest >= LEAST_MEMBERS:
            raise ValueError(
                f"popsize {popsize} would need {needed / 2**30:,.1f} GiB of memory in the update of {strategy} with "
                f"{num_params} parameters, allowed are {MAX_MATRIX_BYTES / 2**30:g}: popsize must be <= {largest}"
            )
        raise CovarianceTooLargeError(
            f"strategy {strategy} would need {needed / 2**30:,.1f} GiB of memory for the covariance of {num_params} "
            f"parameters and the library's temporaries, allowed are {MAX_MATRIX_BYTES / 2**30:g}; sep_cma_es keeps "
            "only the diagonal"
        )


def check_spread(mean: Float32[np.ndarray, " params"], deviation: float | Float64[np.ndarray, " params"]) -> None:
    """FloatingPointError if noise of this deviation changes no weight in float32 any more, or is out of bounds."""
    weight, sigma = np.abs(mean).max(), np.max(deviation)
    if not weight + sigma < LARGEST:  # NaN too
        raise FloatingPointError(
            f"the search diverges, with weights up to {weight:.3g} and sigma up to {sigma:.3g}; is a learning rate, "
            "sigma or the fitness too large?"
        )
    if (mean + np.asarray(deviation, np.float32) == mean).all():
        raise FloatingPointError(
            f"noise of sigma {sigma:.3g} changes no weight in float32 any more, the largest being {weight:.3g}: the "
            "search has converged, or a learning rate is too large"
        )


def movement(
    sigma: float, before: Float64[np.ndarray, " params"], after: Float64[np.ndarray, " params"]
) -> dict[str, float]:
    """Figures of one generation: the sigma that made it, the mean's step, also per weight and sigma, and the mean."""
    step = float(np.linalg.norm(after - before))
    return {
        "sigma": float(sigma),
        "update_norm": step,
        "update_over_sigma": step / (float(sigma) * sqrt(len(after))),
        "mean_norm": float(np.linalg.norm(after)),
    }
