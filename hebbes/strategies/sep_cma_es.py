"""Sep-CMA-ES: CMA-ES with a diagonal covariance, for policies of any size.

Ros & Hansen 2008, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity", PPSN X, as the library
`cmaes` implements it (Nomura & Shibata 2024, arXiv 2402.01373). Departure: the learning rates of the variances follow
the formulas of pycma 4.5.0 (its `cc_sep`, `c1_sep`, `cmu_sep`) for the library's mu_eff. With its own rates the library
needs twice the evaluations on Rosenbrock's function in ten dimensions. Members come from our own random streams. The
library is told their float32 weights, so its generator and its stopping criteria are never used.
"""

from collections.abc import Mapping
from math import sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.strategy import SearchMemory
from hebbes.strategies.core.adaptive import AdaptiveSettings, check_initial_mean
from hebbes.strategies.core.library_search import LibraryStrategy, import_cmaes
from hebbes.strategies.core.populations import GaussianPopulation
from hebbes.strategies.core.spread import check_spread

BYTES_PER_WEIGHT = 27
"""Peak memory of the library's update, per weight and member, in float32 and float64 rows; measured."""


def compute_learning_rates(dimensions: int, mu_eff: float) -> tuple[float, float, float]:
    """Learning rates of the covariance path, the rank-one and the rank-mu update; the last two sum to at most 1."""
    d, root = dimensions, sqrt(dimensions)
    path = (1 + 1 / d + mu_eff / d) / (root + 1 / d + 2 * mu_eff / d)
    rank_one = 1 / (d + 2 * root + mu_eff / d)
    return path, rank_one, min(1 - rank_one, (mu_eff + 1 / mu_eff - 1.75) / (d + 4 * root + mu_eff / 2))


class SepCMAES(LibraryStrategy):
    """A Gaussian whose mean and standard deviations, one per weight, follow the members that succeed."""

    STATE: ClassVar[Mapping[str, str]] = {
        **{"mean": "_mean", "sigma": "_sigma", "variances": "_C", "sigma_path": "_p_sigma", "covariance_path": "_pc"},
        "generation": "_g",
    }
    """Attributes of version 0.13.1; "generation" counts the generations that the library was told."""

    @classmethod
    def memory(cls, settings: AdaptiveSettings, num_params: int, population_size: int) -> SearchMemory:
        """Memory for four float64 vectors, and for several copies of all members in the library's update."""
        return SearchMemory(8 * 4 * num_params, BYTES_PER_WEIGHT * population_size * num_params, 12 * num_params)

    def __init__(self, settings: AdaptiveSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        if len(initial_mean) < 2:
            raise ValueError(f"strategy sep_cma_es needs at least 2 parameters, got {len(initial_mean)}")
        check_initial_mean("sep_cma_es", initial_mean)
        population_size = settings.choose_population_size(len(initial_mean))
        start = np.array(initial_mean, np.float64)
        library = import_cmaes().SepCMA(start, settings.sigma, population_size=population_size)
        library._cc, library._c1, library._cmu = compute_learning_rates(len(initial_mean), library._mu_eff)
        super().__init__(library, seed, population_size)

    def _compute_deviations(self) -> Float64[np.ndarray, " params"]:
        return self._library._sigma * self._library._eigen_decomposition()

    def ask(self, generation: int, num_members: int | None = None) -> GaussianPopulation:
        """The members around the mean, the mean policy last; FloatingPointError if they no longer differ from it."""
        deviations = self._compute_deviations()
        check_spread(self.mean, deviations)
        return GaussianPopulation(
            self.mean, deviations.astype(np.float32), self._seed, generation, self._population_size, sampler="normal"
        )

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` returned."""
        super().load_state_dict(state)
        self._library._D = None  # it belongs to the previous variances
