"""CMA-ES: a Gaussian whose full covariance adapts to the landscape, for policies of up to a few thousand weights.

Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772, as the library `cmaes` implements it (Nomura &
Shibata 2024, arXiv 2402.01373). Members are mean + sigma B D z with z from our own random streams. The library is told
their float32 weights, so its generator and its stopping criteria are never used. Unlike there, a covariance that is
no longer positive definite ends the search. The library goes on with eigenvalues of 1e-8 instead of negative ones, and
replaces the covariance by the product of its factors when members are drawn. The last bits depend on the linear algebra
library, and outside training on its number of threads.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.strategy import SearchMemory
from hebbes.strategies.core.adaptive import AdaptiveSettings, check_initial_mean, check_memory
from hebbes.strategies.core.dense import DensePopulation, draw_noise, estimate_dense_memory
from hebbes.strategies.core.library_search import LibraryStrategy, import_cmaes
from hebbes.strategies.core.spread import check_spread

FIXED_MATRICES = 12
"""Square matrices that an update holds: the covariance, its factors and temporaries."""
MATRICES_PER_MEMBER = 2
"""Outer products, weighted and unweighted, that the library's update makes for all members at once."""


class CMAES(LibraryStrategy):
    """A Gaussian whose mean, step size and covariance follow the members that succeed."""

    STATE: ClassVar[Mapping[str, str]] = {
        **{"mean": "_mean", "sigma": "_sigma", "covariance": "_C", "sigma_path": "_p_sigma", "covariance_path": "_pc"},
        "generation": "_g",
    }
    """Attributes of version 0.13.1; "generation" counts the generations that the library was told."""

    @classmethod
    def memory(cls, settings: AdaptiveSettings, num_params: int, population_size: int) -> SearchMemory:
        """Memory for the covariance, the matrices of its update, and the members' rows."""
        return estimate_dense_memory(
            num_params, population_size, FIXED_MATRICES + MATRICES_PER_MEMBER * population_size
        )

    def __init__(self, settings: AdaptiveSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        check_initial_mean("cma_es", initial_mean)
        population_size = settings.choose_population_size(len(initial_mean))
        check_memory("cma_es", len(initial_mean), population_size, FIXED_MATRICES, MATRICES_PER_MEMBER)
        super().__init__(
            import_cmaes().CMA(np.array(initial_mean, np.float64), settings.sigma, population_size=population_size),
            seed,
            population_size,
        )

    def _compute_deviations(self) -> Float64[np.ndarray, " params"]:
        return self._library._sigma * np.sqrt(np.diag(self._library._C))

    def ask(self, generation: int, num_members: int | None = None) -> DensePopulation:
        """The members around the mean, the mean policy last.

        FloatingPointError if members no longer differ from the mean, or from each other in some direction.
        """
        library = self._library
        check_spread(self.mean, self._compute_deviations())
        variances, B = np.linalg.eigh((library._C + library._C.T) / 2)
        if not variances[0] > 0:
            raise FloatingPointError(
                "the search has converged in some direction: the covariance of cma_es is no longer positive definite"
            )
        D = np.sqrt(variances)
        library._B, library._D = B, D  # what its `tell` uses
        noise = draw_noise(self._seed, generation, range(self._population_size), len(D))
        rows = library.mean + library._sigma * (noise * D) @ B.T
        return DensePopulation(np.vstack([rows, library.mean]).astype(np.float32), self._seed, generation)
