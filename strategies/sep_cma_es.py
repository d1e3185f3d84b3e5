"""Sep-CMA-ES: CMA-ES whose covariance is a diagonal, so that it serves policies of any size.

Ros & Hansen 2008, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity", PPSN X, as the library
`cmaes` implements it (Nomura & Shibata 2024, arXiv 2402.01373). Members come from our own streams and the library is
told their float32 weights, so its generator is never used, and neither are its criteria to stop. Failed members rank
last, ties by their number.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from cmaes import SepCMA
from jaxtyping import Float32, Float64

from contracts.population import Population
from contracts.strategy import Combine
from strategies.adaptive import AdaptiveSettings, check_spread, movement
from strategies.gaussian_search import tied_share
from strategies.populations import GaussianPopulation
from strategies.restoring import matching
from strategies.selection import best_first

STATE = {
    **{"mean": "_mean", "sigma": "_sigma", "variances": "_C", "sigma_path": "_p_sigma", "covariance_path": "_pc"},
    "generation": "_g",
}
"""Attributes of the library's object, version 0.13.1, that change from one generation to the next and matter."""


class SepCmaEs:
    """A Gaussian with a deviation for each weight, both adapted to the steps that succeed."""

    Settings: ClassVar[type[AdaptiveSettings]] = AdaptiveSettings
    grows: ClassVar[bool] = False

    def __init__(self, settings: AdaptiveSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        if len(initial_mean) < 2:
            raise ValueError(f"strategy sep_cma_es needs at least 2 parameters, got {len(initial_mean)}")
        self._seed = seed
        self._popsize = settings.members(len(initial_mean))
        mean = np.array(initial_mean, np.float64)
        self._library = SepCMA(mean, settings.sigma, population_size=self._popsize)
        if self._library._c1 + self._library._cmu > 1:  # variances would become negative
            raise ValueError(
                f"popsize must be smaller for sep_cma_es with {len(mean)} parameters, got {self._popsize}: the rate at "
                "which it learns variances would exceed 1"
            )

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The unperturbed policy's parameters."""
        return self._library.mean.astype(np.float32)

    def ask(self, generation: int, num_members: int | None = None) -> GaussianPopulation:
        """Members around the mean, then the mean itself; FloatingPointError if they no longer differ from it."""
        deviations = self._library._sigma * self._library._eigen_decomposition()
        check_spread(self.mean, deviations)
        return GaussianPopulation(
            self.mean, deviations.astype(np.float32), self._seed, generation, self._popsize, sampler="normal"
        )

    def tell(
        self, population: Population, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """One update of mean, sigma and variances; the sigma reported is the root mean square over the weights."""
        library = self._library
        before, sigma = library.mean.copy(), library._sigma * np.sqrt(library._C.mean())
        rows = population.weights(range(self._popsize))
        library.tell([(rows[member], float(rank)) for rank, member in enumerate(best_first(fitness[:-1]))])
        return {**movement(sigma, before, library.mean), "tied_share": tied_share(fitness[:-1])}

    def state_dict(self) -> dict[str, np.ndarray]:
        """Mean, sigma, variances, both evolution paths and the number of generations told."""
        return {name: np.array(getattr(self._library, attribute)) for name, attribute in STATE.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        for name, array in matching(self.state_dict(), state).items():
            setattr(self._library, STATE[name], array if array.ndim else array.item())
        self._library._D = None  # belongs to the variances before
