"""CMA-ES: a Gaussian whose full covariance adapts itself to the landscape; for policies of up to some thousand weights.

Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772, as the library `cmaes` implements it (Nomura &
Shibata 2024, arXiv 2402.01373). Members are mean + sigma B D z with z from our own streams, and the library is told
their float32 weights, so its generator is never used, and neither are its criteria to stop. The last bits depend on the
linear algebra library, and outside training on its number of threads.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from cmaes import CMA
from jaxtyping import Float32, Float64

from hebbes.contracts.strategy import SearchMemory
from hebbes.strategies.core.adaptive import AdaptiveSettings, check_memory, check_spread
from hebbes.strategies.core.dense import DensePopulation, dense_memory, standard_noise
from hebbes.strategies.core.library_search import LibraryStrategy

FIXED_MATRICES = 12
"""Covariance, its factors and temporaries."""
MATRICES_PER_MEMBER = 2
"""Outer products, weighted and not, which the library's update makes for all members at once."""


class CMAES(LibraryStrategy):
    """A Gaussian whose mean, step size and covariance follow the members that succeed."""

    STATE: ClassVar[Mapping[str, str]] = {
        **{"mean": "_mean", "sigma": "_sigma", "covariance": "_C", "sigma_path": "_p_sigma", "covariance_path": "_pc"},
        "generation": "_g",
    }
    """Of version 0.13.1; "generation" is the number of those told."""

    @classmethod
    def memory(cls, settings: AdaptiveSettings, num_params: int, popsize: int) -> SearchMemory:
        """The covariance, the matrices of its update, and the members' rows."""
        return dense_memory(num_params, popsize, FIXED_MATRICES + MATRICES_PER_MEMBER * popsize)

    def __init__(self, settings: AdaptiveSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        popsize = settings.members(len(initial_mean))
        check_memory("cma_es", len(initial_mean), popsize, FIXED_MATRICES, MATRICES_PER_MEMBER)
        super().__init__(
            CMA(np.array(initial_mean, np.float64), settings.sigma, population_size=popsize), seed, popsize
        )

    def _deviations(self) -> Float64[np.ndarray, " params"]:
        return self._library._sigma * np.sqrt(np.diag(self._library._C))

    def ask(self, generation: int, num_members: int | None = None) -> DensePopulation:
        """Members around the mean, then the mean itself; FloatingPointError if they no longer differ from it."""
        library = self._library
        check_spread(self.mean, self._deviations())
        covariance = library._C
        B, D = library._eigen_decomposition()
        library._C = covariance  # not the product of its factors: asking changes no bit
        noise = standard_noise(self._seed, generation, range(self._popsize), len(D))
        rows = library.mean + library._sigma * (noise * D) @ B.T
        return DensePopulation(np.vstack([rows, library.mean]).astype(np.float32), self._seed, generation)

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        super().load_state_dict(state)
        self._library._B = self._library._D = None  # belong to the covariance before
