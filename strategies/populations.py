"""Populations: members described by seeds, so that any worker can make any slice of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64

from contracts.policy import Weights
from contracts.randomness import Purpose, stream


@dataclass(frozen=True)
class GaussianPopulation:
    """Antithetic pairs around a centre, then the centre itself.

    Member 2k is `center + sigma * noise_k`, member 2k + 1 is `center - sigma * noise_k`, and the last member, number
    `popsize`, is the unperturbed centre.
    """

    center: Float32[np.ndarray, " params"]
    sigma: float
    seed: int
    generation: int
    popsize: int

    def __len__(self) -> int:
        """The perturbed members and the unperturbed one."""
        return self.popsize + 1

    def _noise(self, pair: int) -> Float32[np.ndarray, " params"]:
        rng = stream(self.seed, Purpose.NOISE, generation=self.generation, member=pair)
        return rng.standard_normal(len(self.center), dtype=np.float32)

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members named, one row each."""
        rows = np.empty((len(ids), len(self.center)), np.float32)
        scale, drawn, noise = np.float32(self.sigma), -1, self.center
        for row, member in zip(rows, ids, strict=True):
            if member == self.popsize:
                row[:] = self.center
                continue
            if member // 2 != drawn:  # twins are neighbours: draw their noise once
                drawn, noise = member // 2, self._noise(member // 2)
            np.multiply(noise, scale if member % 2 == 0 else -scale, out=row)
            row += self.center
        return rows

    def combine(
        self, ids: Sequence[int], utilities: Float[np.ndarray, " ids"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum of utility times noise to the power; the unperturbed member has none."""
        coefficients: dict[int, float] = {}
        for member, utility in zip(ids, utilities, strict=True):
            if member < self.popsize:
                sign = (-1) ** (member % 2 * power)
                coefficients[member // 2] = coefficients.get(member // 2, 0.0) + sign * utility
        total = np.zeros(len(self.center))
        for pair, coefficient in coefficients.items():
            total += coefficient * self._noise(pair).astype(np.float64) ** power
        return total


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
