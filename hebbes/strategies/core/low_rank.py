"""Low-rank noise: every matrix is perturbed by A B^T / sqrt(r), so that all members share the product with the center.

Sarkar, Fellows, Duque et al., "Evolution Strategies at the Hyperscale" (EGGROLL), arXiv 2511.16652. The entries of A
and B are standard normal. The entries of A B^T / sqrt(r) then have unit variance and no correlation, so that a step is
the sum of utility times noise, as in plain evolution strategies. Kernels and vectors get plain noise. Departure:
members come in antithetic pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Float32, Float64, Int

from hebbes.contracts.policy import Layout, LowRankWeights, name_left_factor, name_right_factor
from hebbes.contracts.randomness import Purpose, make_generator


@dataclass(frozen=True)
class LowRankPopulation:
    """Antithetic pairs around a center, and the center as the last member.

    Member 2k is `center + sigma * noise_k`, member 2k + 1 is `center - sigma * noise_k`. Member `population_size` is
    the center, the mean policy.
    """

    center: Float32[np.ndarray, " params"]
    sigma: float
    seed: int
    generation: int
    population_size: int
    layout: Layout
    """Names and shapes of the parameters."""
    rank: int

    def __len__(self) -> int:
        """Number of members, the mean policy included."""
        return self.population_size + 1

    @cached_property
    def _factors(self) -> Layout:
        return self.layout.make_factor_layout(self.rank)

    def _draw_noise(self, pairs: Int[np.ndarray, " pairs"]) -> Float32[np.ndarray, "pairs factors"]:
        """Noise of each pair; the left factors include 1 / sqrt(r)."""
        noise = np.empty((len(pairs), self._factors.num_params), np.float32)
        for row, pair in zip(noise, pairs.tolist(), strict=True):
            rng = make_generator(self.seed, Purpose.NOISE, generation=self.generation, member=pair)
            rng.standard_normal(dtype=np.float32, out=row)
        for name in self.layout.matrices:
            noise[:, self._factors.slices[name_left_factor(name)]] /= np.sqrt(np.float32(self.rank))
        return noise

    def _find_signs(self, ids: Sequence[int]) -> Int[np.ndarray, " ids"]:
        """Factor on the pair's noise for each member: 1 or -1, and 0 for the mean policy."""
        members = np.asarray(ids)
        return np.where(members == self.population_size, 0, 1 - 2 * (members % 2))

    def weights(self, ids: Sequence[int]) -> LowRankWeights:
        """Parameters of the members `ids`: the center, and the scaled noise of each."""
        pairs, places = np.unique(np.asarray(ids) // 2, return_inverse=True)
        noise = self._draw_noise(pairs)[places]
        scales = self._find_signs(ids).astype(np.float32)[:, np.newaxis] * np.float32(self.sigma)
        unscaled = {name_right_factor(name) for name in self.layout.matrices}
        for name, where in self._factors.slices.items():
            if name not in unscaled:
                noise[:, where] *= scales
        return LowRankWeights(self._transpose_center(), noise, self.layout, self._factors)

    def _transpose_center(self) -> Float32[np.ndarray, " params"]:
        """The center with its matrices as (in, out)."""
        row = self.center.copy()
        for name in self.layout.matrices:
            where = self.layout.slices[name]
            row[where] = self.center[where].reshape(self.layout.shapes[name]).T.ravel()
        return row

    def weighted_noise_sums(
        self, ids: Sequence[int], utilities: Float[np.ndarray, "rows ids"], powers: Sequence[int]
    ) -> Float64[np.ndarray, "rows params"]:
        """Sums of utility times full-size noise; the mean policy has no noise. ValueError unless all powers are 1."""
        if set(powers) != {1}:
            raise ValueError(f"power must be 1 for low-rank noise, got {max(powers)}")
        pairs, places = np.unique(np.asarray(ids) // 2, return_inverse=True)
        coefficients = np.stack([np.bincount(places, self._find_signs(ids) * row) for row in utilities])
        needed = coefficients.any(axis=0)
        coefficients, noise = coefficients[:, needed], self._draw_noise(pairs[needed]).astype(np.float64)
        sums = np.empty((len(powers), len(self.center)))
        for total, row in zip(sums, coefficients, strict=True):
            self._sum_pairs(row[row != 0], noise[row != 0], total)
        return sums

    def _sum_pairs(
        self,
        coefficients: Float64[np.ndarray, " pairs"],
        noise: Float64[np.ndarray, "pairs factors"],
        total: Float64[np.ndarray, " params"],
    ) -> None:
        """Fills `total` with the sum of coefficient times full-size noise."""
        # einsum, not BLAS: its threads would compete with the engine's, and the last bits depend on their number
        for name, where in self.layout.slices.items():
            if name in self.layout.matrices:
                A = self._factors.view(noise, name_left_factor(name)) * coefficients[:, np.newaxis, np.newaxis]
                B = self._factors.view(noise, name_right_factor(name))
                total[where] = np.einsum("kro,kri->oi", A, B).ravel()
            else:
                total[where] = np.einsum("k,kn->n", coefficients, noise[:, self._factors.slices[name]])
