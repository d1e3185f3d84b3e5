"""Populations: members described by seeds, so that any worker can make any slice of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from jaxtyping import Float, Float32, Float64

from hebbes.contracts.policy import Weights
from hebbes.contracts.randomness import Purpose, stream
from hebbes.strategies.core.samplers import SAMPLERS


@dataclass(frozen=True)
class GaussianPopulation:
    """Members `center + sigma * noise`, then the centre itself: the last member, number `popsize`, is unperturbed.

    The first members of a larger population are those of a smaller one. Where the sampler makes twins, members 2k and
    2k + 1 have opposite noise.
    """

    center: Float32[np.ndarray, " params"]
    sigma: float | Float[np.ndarray, " params"]
    """Standard deviation of all parameters, or of each."""
    seed: int
    generation: int
    popsize: int
    sampler: str = "antithetic"
    """A key of SAMPLERS."""

    def __len__(self) -> int:
        """The perturbed members and the unperturbed one."""
        return self.popsize + 1

    def _noise(self, directions: Sequence[int]) -> Iterator[Float32[np.ndarray, " params"]]:
        def rng(direction: int) -> np.random.Generator:
            return stream(self.seed, Purpose.NOISE, generation=self.generation, member=direction)

        return SAMPLERS[self.sampler].directions(directions, len(self.center), rng)

    def _direction(self, member: int) -> tuple[int, int]:
        """The direction of a perturbed member, and the sign with which it goes along it."""
        return (member // 2, 1 - 2 * (member % 2)) if SAMPLERS[self.sampler].twins else (member, 1)

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members named, one row each."""
        rows = np.tile(self.center, (len(ids), 1))
        scale = np.asarray(self.sigma, np.float32)
        moves = [
            (row, *self._direction(member)) for row, member in zip(rows, ids, strict=True) if member < self.popsize
        ]
        groups = [(direction, list(group)) for direction, group in groupby(moves, key=lambda move: move[1])]
        # twins are neighbours: their noise is drawn once
        for (_, group), noise in zip(groups, self._noise([direction for direction, _ in groups]), strict=True):
            for row, _, sign in group:
                row += noise * (sign * scale)
        return rows

    def combine(
        self, ids: Sequence[int], utilities: Float[np.ndarray, " ids"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum of utility times noise to the power; the unperturbed member has none."""
        coefficients: dict[int, float] = {}
        for member, utility in zip(ids, utilities, strict=True):
            if member < self.popsize and utility != 0:
                direction, sign = self._direction(member)
                coefficients[direction] = coefficients.get(direction, 0.0) + sign**power * utility
        total = np.zeros(len(self.center))
        for coefficient, noise in zip(coefficients.values(), self._noise(list(coefficients)), strict=True):
            total += coefficient * noise.astype(np.float64) ** power
        return total
