"""Gaussian populations: members described by seeds, so that any worker can make any slice of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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

    def _group_by_direction(self, ids: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
        """Direction -> the places in `ids` of its members, with the signs of their noise. The mean policy has none."""
        groups: dict[int, list[tuple[int, int]]] = {}
        is_mirrored = SAMPLERS[self.sampler].is_mirrored
        for place, member in enumerate(ids):
            if member < self.population_size:
                direction, sign = (member // 2, 1 - 2 * (member % 2)) if is_mirrored else (member, 1)
                groups.setdefault(direction, []).append((place, sign))
        return groups

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members `ids`, one row each."""
        rows = np.tile(self.center, (len(ids), 1))
        scale = np.asarray(self.sigma, np.float32)
        groups = self._group_by_direction(ids)
        for group, noise in zip(groups.values(), self._draw_noise(list(groups)), strict=True):
            for place, sign in group:
                rows[place] += noise * (sign * scale)
        return rows

    def weighted_noise_sums(
        self, ids: Sequence[int], utilities: Float[np.ndarray, "rows ids"], powers: Sequence[int]
    ) -> Float64[np.ndarray, "rows params"]:
        """Sums of utility times noise to the power, one for each row; the mean policy has no noise."""
        coefficients = {
            direction: [
                sum(sign**power * row[place] for place, sign in group)
                for row, power in zip(utilities, powers, strict=True)
            ]
            for direction, group in self._group_by_direction(ids).items()
        }
        needed = {direction: column for direction, column in coefficients.items() if any(column)}
        sums, product = np.zeros((len(powers), len(self.center))), np.empty(len(self.center))
        for column, noise in zip(needed.values(), self._draw_noise(list(needed)), strict=True):
            for total, coefficient, power in zip(sums, column, powers, strict=True):
                if coefficient != 0:
                    np.multiply(noise, coefficient, out=product, dtype=np.float64)
                    if power == 2:
                        product *= noise
                    total += product
        return sums
