"""Sep-CMA-ES: CMA-ES whose covariance is a diagonal, so that it serves policies of any size.

Ros & Hansen 2008, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity", PPSN X, as the library
`cmaes` implements it (Nomura & Shibata 2024, arXiv 2402.01373), but learning variances at the rates that pycma 4.5.0's
formulas (its `cc_sep`, `c1_sep`, `cmu_sep`) give for the library's mu_eff: its own need twice the evaluations on
Rosenbrock's function in ten dimensions. Members come from our own streams and the library is told their float32
weights, so its generator is never used, and neither are its criteria to stop.
"""

from collections.abc import Mapping
from math import sqrt
from typing import ClassVar

import numpy as np
from cmaes import SepCMA
from jaxtyping import Float32, Float64

from hebbes.contracts.strategy import SearchMemory
from hebbes.strategies.core.adaptive import AdaptiveSettings, check_spread
from hebbes.strategies.core.library_search import LibraryStrategy
from hebbes.strategies.core.populations import GaussianPopulation

BYTES_PER_WEIGHT = 27
"""Of every member, in the library's update: rows of float32 and float64, some gone when others are made; measured."""


def learning_rates(dimensions: int, mu_eff: float) -> tuple[float, float, float]:
    """Rates of the covariance path, of the rank-one and of the rank-mu update; the last two make at most 1 together."""
    d, root = dimensions, sqrt(dimensions)
    path = (1 + 1 / d + mu_eff / d) / (root + 1 / d + 2 * mu_eff / d)
    rank_one = 1 / (d + 2 * root + mu_eff / d)
    return path, rank_one, min(1 - rank_one, (mu_eff + 1 / mu_eff - 1.75) / (d + 4 * root + mu_eff / 2))


class SepCMAES(LibraryStrategy):
    """A Gaussian with a deviation for each weight, both adapted to the steps that succeed."""

    STATE: ClassVar[Mapping[str, str]] = {
        **{"mean": "_mean", "sigma": "_sigma", "variances": "_C", "sigma_path": "_p_sigma", "covariance_path": "_pc"},
        "generation": "_g",
    }
    """Of version 0.13.1; "generation" is the number of those told."""

    @classmethod
    def memory(cls, settings: AdaptiveSettings, num_params: int, popsize: int) -> SearchMemory:
        """Four vectors of float64, and in the library's update all members several times over."""
        return SearchMemory(8 * 4 * num_params, BYTES_PER_WEIGHT * popsize * num_params, 12 * num_params)

    def __init__(self, settings: AdaptiveSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        if len(initial_mean) < 2:
            raise ValueError(f"strategy sep_cma_es needs at least 2 parameters, got {len(initial_mean)}")
        popsize = settings.members(len(initial_mean))
        library = SepCMA(np.array(initial_mean, np.float64), settings.sigma, population_size=popsize)
        library._cc, library._c1, library._cmu = learning_rates(len(initial_mean), library._mu_eff)
        super().__init__(library, seed, popsize)

    def _deviations(self) -> Float64[np.ndarray, " params"]:
        return self._library._sigma * self._library._eigen_decomposition()

    def ask(self, generation: int, num_members: int | None = None) -> GaussianPopulation:
        """Members around the mean, then the mean itself; FloatingPointError if they no longer differ from it."""
        deviations = self._deviations()
        check_spread(self.mean, deviations)
        return GaussianPopulation(
            self.mean, deviations.astype(np.float32), self._seed, generation, self._popsize, sampler="normal"
        )

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        super().load_state_dict(state)
        self._library._D = None  # belongs to the variances before
