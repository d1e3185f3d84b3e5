"""Populations whose members are sent as rows, for search distributions too intricate for workers to make members."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64

from hebbes.contracts.policy import Weights
from hebbes.contracts.randomness import Purpose, stream
from hebbes.contracts.strategy import SearchMemory


def standard_noise(
    seed: int, generation: int, ids: Sequence[int], num_params: int
) -> Float64[np.ndarray, "ids params"]:
    """Standard normal noise of the members named, each from a stream of its own."""
    noise = np.empty((len(ids), num_params))
    for row, member in zip(noise, ids, strict=True):
        stream(seed, Purpose.NOISE, generation=generation, member=member).standard_normal(out=row)
    return noise


def dense_memory(num_params: int, popsize: int, matrices: int) -> SearchMemory:
    """What a search with so many square matrices takes, one of them its state, and with the rows of its members.

    Rows are there in float32, and in `ask` as noise, scaled noise and members in float64, once more while stacked.
    """
    square, row = 8 * num_params**2, num_params * popsize
    return SearchMemory(square, (matrices - 1) * square + 4 * 8 * row, 4 * row)


@dataclass(frozen=True)
class DensePopulation:
    """Members that were made where the distribution is, the unperturbed one last; only for small policies."""

    rows: Float32[np.ndarray, "members params"]
    seed: int
    generation: int

    def __len__(self) -> int:
        """The perturbed members and the unperturbed one."""
        return len(self.rows)

    def noise(self, ids: Sequence[int]) -> Float64[np.ndarray, "ids params"]:
        """Standard normal noise from which the perturbed members named were made."""
        return standard_noise(self.seed, self.generation, ids, self.rows.shape[1])

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members named, one row each."""
        return self.rows[list(ids)]

    def combine(
        self, ids: Sequence[int], utilities: Float[np.ndarray, " ids"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum of utility times noise to the power; the unperturbed member has none."""
        total = np.zeros(self.rows.shape[1])
        for member, utility in zip(ids, utilities, strict=True):
            if member < len(self.rows) - 1 and utility != 0:
                total += utility * self.noise([member])[0] ** power
        return total
