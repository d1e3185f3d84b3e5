"""Populations whose members are sent as rows, for search distributions that are too large to send to workers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.policy import Weights
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.strategy import SearchMemory


def draw_noise(seed: int, generation: int, ids: Sequence[int], num_params: int) -> Float64[np.ndarray, "ids params"]:
    """Standard normal noise of the members `ids`, each from its own stream."""
    noise = np.empty((len(ids), num_params))
    for row, member in zip(noise, ids, strict=True):
        make_generator(seed, Purpose.NOISE, generation=generation, member=member).standard_normal(out=row)
    return noise


def estimate_dense_memory(num_params: int, population_size: int, matrices: int) -> SearchMemory:
    """Memory of a search that holds `matrices` square matrices, one of them its state, and the rows of its members.

    The rows are kept in float32. `ask` also holds them in float64 as noise, scaled noise, members and stacked members.
    """
    square, row = 8 * num_params**2, num_params * population_size
    return SearchMemory(square, (matrices - 1) * square + 4 * 8 * row, 4 * row)


@dataclass(frozen=True)
class DensePopulation:
    """Members as rows of weights, made by the strategy itself, the mean policy last; only for small policies."""

    rows: Float32[np.ndarray, "members params"]
    seed: int
    generation: int

    def __len__(self) -> int:
        """Number of members, the mean policy included."""
        return len(self.rows)

    def noise(self, ids: Sequence[int]) -> Float64[np.ndarray, "ids params"]:
        """Standard normal noise of the perturbed members `ids`."""
        return draw_noise(self.seed, self.generation, ids, self.rows.shape[1])

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members `ids`, one row each."""
        return self.rows[list(ids)]
