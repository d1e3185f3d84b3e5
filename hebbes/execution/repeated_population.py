"""RepeatedPopulation: one policy as a population, so that an evaluation can play many episodes at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Weights


@dataclass(frozen=True)
class RepeatedPopulation:
    """A population of `size` members that all have the same parameters."""

    params: Float32[np.ndarray, " params"]
    size: int

    def __len__(self) -> int:
        """Number of members."""
        return self.size

    def weights(self, ids: Sequence[int]) -> Weights:
        """The parameters, repeated for every id."""
        return np.repeat(self.params[np.newaxis], len(ids), axis=0)
