"""Population: the members of one generation, described so that any slice can be made anywhere."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float, Float64

from hebbes.contracts.policy import Weights


class Population(Protocol):
    """Members 0..len-1. Picklable, and seeds rather than weights wherever that will do."""

    def __len__(self) -> int:
        """Number of members to evaluate."""

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members named, one row each in an array of its own, the same bits wherever it is called."""

    def combine(
        self, ids: Sequence[int], utilities: Float[np.ndarray, " ids"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum over the members named of utility times unit-variance noise to the power of 1 or 2.

        ValueError where the population has no such sum: low-rank noise is summed to the power of 1 only.
        """
