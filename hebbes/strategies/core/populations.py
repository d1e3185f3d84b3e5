"""Gaussian populations: members described by seeds, so that any worker can make any slice of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from jaxtyping import Float, Float32, Float64

from hebbes.contracts.policy import Weights
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.strategies.core.samplers import SAMPLERS


@dataclass(frozen=True)
class GaussianPopulation:
    """Members `center + sigma * noise`; the last member, number `population_size`, is the center, the mean policy.

    The first members of a larger population are those of a smaller one. If the sampler makes antithetic pairs, members
    2k and 2k + 1 have opposite noise.
    """

    center: Float32[np.ndarray, " params"]
    sigma: float | Float[np.ndarray, " params"]
    """Standard deviation: one for all parameters, or one for each."""
    seed: int
    generation: int
    population_size: int
    sampler: str = "antithetic"
    """A key of SAMPLERS."""

    def __len__(self) -> int:
        """Number of members, the mean policy included."""
        return self.population_size + 1

    def _draw_noise(self, directions: Sequence[int]) -> Iterator[Float32[np.ndarray, " params"]]:
        def make_rng(direction: int) -> np.random.Generator:
            return make_generator(self.seed, Purpose.NOISE, generation=self.generation, member=direction)

        return SAMPLERS[self.sampler].draw(directions, len(self.center), make_rng)

    def _find_direction(self, member: int) -> tuple[int, int]:
        """The direction of a perturbed member, and the sign of its noise: 1 or -1."""
        return (member // 2, 1 - 2 * (member % 2)) if SAMPLERS[self.sampler].is_mirrored else (member, 1)

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members `ids`, one row each."""
        rows = np.tile(self.center, (len(ids), 1))
        scale = np.asarray(self.sigma, np.float32)
        moves = [
            (row, *self._find_direction(member))
            for row, member in zip(rows, ids, strict=True)
            if member < self.population_size
        ]
        groups = [(direction, list(group)) for direction, group in groupby(moves, key=lambda move: move[1])]
        # the members of a pair are neighbors, so their noise is drawn once
        for (_, group), noise in zip(groups, self._draw_noise([direction for direction, _ in groups]), strict=True):
            for row, _, sign in group:
                row += noise * (sign * scale)
        return rows

    def weighted_noise_sum(
        self, ids: Sequence[int], utilities: Float[np.ndarray, " ids"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum of utility times noise to the power; the mean policy has no noise."""
        coefficients: dict[int, float] = {}
        for member, utility in zip(ids, utilities, strict=True):
            if member < self.population_size and utility != 0:
                direction, sign = self._find_direction(member)
                coefficients[direction] = coefficients.get(direction, 0.0) + sign**power * utility
        total = np.zeros(len(self.center))
        for coefficient, noise in zip(coefficients.values(), self._draw_noise(list(coefficients)), strict=True):
            total += coefficient * noise.astype(np.float64) ** power
        return total
