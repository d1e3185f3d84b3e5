"""(1+1)-ES: one candidate per generation. It is kept if it is at least as good as its parent.

Rechenberg 1973, "Evolutionsstrategie", with the success rule in the form of Hansen, Arnold & Auger 2015, "Evolution
Strategies", Springer Handbook of Computational Intelligence, sec. 3.1, which needs no window: sigma *= exp((success -
1/5) / d) with d = sqrt(n + 1). Departures:

- The parent takes the place of the mean policy. It is evaluated again in every generation, in the same episodes as the
  candidate unless `--episode_seeds independent`, so that a lucky return does not last.
- A tie is accepted but does not change sigma. Otherwise sigma would grow without bound where all returns are equal.
- Sigma has a floor.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import check_options, option
from hebbes.contracts.population import Population
from hebbes.contracts.search_space import LogUniform
from hebbes.contracts.strategy import Results, SearchMemory
from hebbes.strategies.core.populations import GaussianPopulation
from hebbes.strategies.core.restoring import Restorable
from hebbes.strategies.core.spread import check_spread, compute_move_metrics

TARGET_SUCCESS_RATE = 0.2


@dataclass(frozen=True)
class OnePlusOneSettings:
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    sigma: float = option(
        0.1,
        "initial standard deviation of the noise on the weights; it adapts",
        range="> 0",
        search=LogUniform(0.01, 1.0),
    )
    sigma_min: float = option(1e-5, "floor of sigma; if sigma starts below it, that start is the floor", range=">= 0")

    def __post_init__(self) -> None:
        check_options(self)


class OnePlusOne(Restorable):
    """A parent and a step size at which one candidate in five succeeds."""

    Settings: ClassVar[type[OnePlusOneSettings]] = OnePlusOneSettings
    STATE: ClassVar[Mapping[str, str]] = {"parent": "_parent", "sigma": "_sigma"}
    grows: ClassVar[bool] = False

    @classmethod
    def memory(cls, settings: OnePlusOneSettings, num_params: int, population_size: int) -> SearchMemory:
        """Memory for the parent and for the float64 vectors from which metrics are computed."""
        return SearchMemory(4 * num_params, 8 * 4 * num_params, 4 * num_params)

    def __init__(self, settings: OnePlusOneSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._settings = settings
        self._seed = seed
        self._parent = np.array(initial_mean, np.float32)
        self._sigma = settings.sigma
        self._damping = sqrt(len(initial_mean) + 1)

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The parent's parameters."""
        return self._parent.copy()

    def ask(self, generation: int, num_members: int | None = None) -> GaussianPopulation:
        """The candidate, and its parent last; FloatingPointError if they no longer differ."""
        check_spread(self._parent, self._sigma)
        return GaussianPopulation(self.mean, self._sigma, self._seed, generation, population_size=1, sampler="normal")

    def tell(self, population: Population, results: Results) -> dict[str, float]:
        """Keeps the better of the two and returns the metrics; a failed one is worse than any other."""
        candidate, parent = np.where(np.isnan(results.fitness), -np.inf, results.fitness)
        before, sigma = self._parent, self._sigma
        if candidate >= parent and np.isfinite(candidate):
            self._parent = np.asarray(population.weights([0]))[0]
        if candidate != parent:
            self._sigma = sigma * exp((float(candidate > parent) - TARGET_SUCCESS_RATE) / self._damping)
            self._sigma = max(self._sigma, min(self._settings.sigma_min, self._settings.sigma))
        mean = self._parent.astype(np.float64)
        return compute_move_metrics(sigma, sigma, mean - before, mean)
