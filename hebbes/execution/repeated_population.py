"""RepeatedPopulation: one policy in many episodes at once, as evaluations play it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64

from hebbes.contracts.policy import Weights


@dataclass(frozen=True)
class RepeatedPopulation:
    """The same parameters `copies` times: one policy in many episodes at once."""

    row: Float32[np.ndarray, " params"]
    copies: int

    def __len__(self) -> int:
        """Number of copies."""
        return self.copies

    def weights(self, ids: Sequence[int]) -> Weights:
        """The one row, once for every id."""
        return np.repeat(self.row[np.newaxis], len(ids), axis=0)

    def combine(
        self, ids: Sequence[int], utilities: Float[np.ndarray, " ids"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Zero: these members carry no noise."""
        return np.zeros(len(self.row))
