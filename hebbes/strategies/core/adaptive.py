"""Settings of the strategies that adapt their own sigma, and checks before they start.

The default number of members is equation 48 of Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772.
"""

from dataclasses import dataclass
from math import floor, log

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import check_options, option
from hebbes.contracts.search_space import Choice, LogUniform
from hebbes.strategies.core.spread import MAX_WEIGHT

MAX_MATRIX_BYTES = 4 * 2**30
"""Memory limit of a full covariance and the temporaries of its update; above it a generation takes minutes."""
MIN_POPULATION_SIZE = 4
"""Fewest members with which these strategies work."""


def check_initial_mean(name: str, initial_mean: Float32[np.ndarray, " params"]) -> None:
    """Raises ValueError for weights with which the strategy cannot start."""
    if not (largest := np.abs(initial_mean).max()) < MAX_WEIGHT:
        raise ValueError(f"strategy {name} needs initial weights below {MAX_WEIGHT:g}, got {largest:g}")


class CovarianceTooLargeError(ValueError):
    """The policy has too many parameters for a full covariance."""


@dataclass(frozen=True)
class AdaptiveSettings:
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    population_size: int | None = option(
        None,
        "members per generation (default: 4 + 3 ln(number of parameters), rounded up to an even number for antithetic "
        "pairs)",
        range=f">= {MIN_POPULATION_SIZE}",
        search=Choice((16, 32, 64, 128, 256)),
    )
    sigma: float = option(
        0.1,
        "initial standard deviation of the noise on the weights; it adapts",
        range="> 0",
        search=LogUniform(0.01, 1.0),
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.has_pairs and self.population_size is not None and self.population_size % 2:
            allowed = f"an even number >= {MIN_POPULATION_SIZE} (antithetic pairs)"
            raise ValueError(f"population_size must be {allowed}, got {self.population_size}")

    @property
    def has_pairs(self) -> bool:
        """Whether members come in antithetic pairs."""
        return False

    def choose_population_size(self, num_params: int) -> int:
        """Members per generation: the setting, or 4 + floor(3 ln num_params), rounded up to whole pairs."""
        if self.population_size is not None:
            return self.population_size
        found = 4 + floor(3 * log(num_params))
        return found + found % 2 if self.has_pairs else found


def check_memory(strategy: str, num_params: int, population_size: int, fixed: int, per_member: int = 0) -> None:
    """Refuses an update whose square float64 matrices exceed MAX_MATRIX_BYTES.

    Args:
        strategy: its name in the registry, for the message.
        num_params: number of rows and columns of each matrix.
        population_size: members per generation.
        fixed: number of matrices, whatever the population size.
        per_member: number of further matrices per member.

    Raises:
        CovarianceTooLargeError: if no population size would fit.
        ValueError: if a smaller population would fit.
    """
    square = num_params**2 * 8
    needed = (fixed + per_member * population_size) * square
    if needed > MAX_MATRIX_BYTES:
        largest = (MAX_MATRIX_BYTES // square - fixed) // per_member if per_member else 0
        if largest >= MIN_POPULATION_SIZE:
            raise ValueError(
                f"population_size {population_size} would need {needed / 2**30:,.1f} GiB of memory in the update of "
                f"{strategy} with {num_params} parameters, and {MAX_MATRIX_BYTES / 2**30:g} GiB are allowed: "
                f"population_size must be <= {largest}"
            )
        raise CovarianceTooLargeError(
            f"strategy {strategy} would need {needed / 2**30:,.1f} GiB of memory for the covariance of {num_params} "
            f"parameters and the temporaries of its update, and {MAX_MATRIX_BYTES / 2**30:g} GiB are allowed; "
            "sep_cma_es keeps only the diagonal, or a smaller policy (policy, hidden_sizes) needs less"
        )
