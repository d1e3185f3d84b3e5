"""Population: the members of one generation, described so that any process can make any of them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float, Float64

from hebbes.contracts.policy import Weights


class Population(Protocol):
    """Members 0..len-1. Picklable; holds seeds instead of weights where possible."""

    def __len__(self) -> int:
        """Number of members to evaluate."""

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the given members in a new array, one row each; the same bits in every process."""

    def weighted_noise_sum(
        self, ids: Sequence[int], utilities: Float[np.ndarray, " ids"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum over the given members of utility * noise**power, with unit-variance noise and a power of 1 or 2.

        ValueError if the population has no such sum: low-rank noise has only the power of 1.
        """
