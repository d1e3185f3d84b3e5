"""CMA-ES: a Gaussian whose full covariance adapts itself to the landscape; for policies of up to some thousand weights.

Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772, as the library `cmaes` implements it (Nomura &
Shibata 2024, arXiv 2402.01373). Members are mean + sigma B D z with z from our own streams, and the library is told
their float32 weights, so its generator is never used, and neither are its criteria to stop. Failed members rank last,
ties by their number. The last bits depend on the linear algebra library and its number of threads.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from cmaes import CMA
from jaxtyping import Float32, Float64

from contracts.population import Population
from contracts.strategy import Combine
from strategies.adaptive import AdaptiveSettings, check_memory, check_spread, movement
from strategies.dense import DensePopulation, standard_noise
from strategies.gaussian_search import tied_share
from strategies.restoring import matching
from strategies.selection import best_first

STATE = {
    **{"mean": "_mean", "sigma": "_sigma", "covariance": "_C", "sigma_path": "_p_sigma", "covariance_path": "_pc"},
    "generation": "_g",
}
"""Attributes of the library's object, version 0.13.1, that change from one generation to the next and matter."""
FIXED_MATRICES = 12
"""Covariance, its factors and temporaries, beside the two matrices a member that the library's update makes."""


class CmaEs:
    """A Gaussian whose mean, step size and covariance follow the members that succeed."""

    Settings: ClassVar[type[AdaptiveSettings]] = AdaptiveSettings
    grows: ClassVar[bool] = False

    def __init__(self, settings: AdaptiveSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._seed = seed
        self._popsize = settings.members(len(initial_mean))
        check_memory("cma_es", len(initial_mean), 2 * self._popsize + FIXED_MATRICES)
        self._library = CMA(np.array(initial_mean, np.float64), settings.sigma, population_size=self._popsize)

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The unperturbed policy's parameters."""
        return self._library.mean.astype(np.float32)

    def ask(self, generation: int, num_members: int | None = None) -> DensePopulation:
        """Members around the mean, then the mean itself; FloatingPointError if they no longer differ from it."""
        library = self._library
        check_spread(self.mean, library._sigma * np.sqrt(np.diag(library._C)))
        B, D = library._eigen_decomposition()
        noise = standard_noise(self._seed, generation, range(self._popsize), len(D))
        rows = library.mean + library._sigma * (noise * D) @ B.T
        return DensePopulation(np.vstack([rows, library.mean]).astype(np.float32), self._seed, generation)

    def tell(
        self, population: Population, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """One update of mean, sigma and covariance; the sigma reported is the root mean square over the weights."""
        library = self._library
        before, sigma = library.mean.copy(), library._sigma * np.sqrt(np.diag(library._C).mean())
        rows = population.weights(range(self._popsize))
        library.tell([(rows[member], float(rank)) for rank, member in enumerate(best_first(fitness[:-1]))])
        return {**movement(sigma, before, library.mean), "tied_share": tied_share(fitness[:-1])}

    def state_dict(self) -> dict[str, np.ndarray]:
        """Mean, sigma, covariance, both evolution paths and the number of generations told."""
        return {name: np.array(getattr(self._library, attribute)) for name, attribute in STATE.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        for name, array in matching(self.state_dict(), state).items():
            setattr(self._library, STATE[name], array if array.ndim else array.item())
        self._library._B = self._library._D = None  # belong to the covariance before
