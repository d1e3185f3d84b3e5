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


class NoisePopulation(Population, Protocol):
    """A population for strategies that step along weighted sums of their members' noise."""

    def weighted_noise_sums(
        self, ids: Sequence[int], utilities: Float[np.ndarray, "rows ids"], powers: Sequence[int]
    ) -> Float64[np.ndarray, "rows params"]:
        """Sums over the given members of utility * noise**power, with unit-variance noise, one for each row.

        The noise of each member is drawn once for all rows. `powers` has a 1 or 2 for each row. ValueError for a sum
        that the population does not have: low-rank noise has only the power of 1.
        """
