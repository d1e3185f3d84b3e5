"""(1+1)-ES: one candidate a generation, kept if it is at least as good as its parent.

Rechenberg 1973, "Evolutionsstrategie", with the success rule in the form of Hansen, Arnold & Auger 2015, "Evolution
Strategies", Springer Handbook of Computational Intelligence, sec. 3.1, which needs no window: sigma *= exp((success -
1/5) / d) with d = sqrt(n + 1). Departures: the parent, which is the population's unperturbed member, is evaluated anew
in every generation, in the same episodes as the candidate, so that a lucky return does not stay; a tie is accepted, but
leaves sigma, which would otherwise grow without bound where all returns are equal; sigma has a floor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.population import Population
from hebbes.contracts.strategy import Combine, SearchMemory
from hebbes.strategies.core.adaptive import check_spread, movement
from hebbes.strategies.core.populations import GaussianPopulation
from hebbes.strategies.core.ranges import check_ranges
from hebbes.strategies.core.restoring import matching

TARGET_SUCCESS_RATE = 0.2


@dataclass(frozen=True)
class OnePlusOneSettings:
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    sigma: float = field(
        default=0.1, metadata={"help": "initial standard deviation of the noise on the weights; adapts itself"}
    )
    sigma_min: float = field(default=1e-5, metadata={"help": "floor of sigma, for one that starts above it"})

    def __post_init__(self) -> None:
        check_ranges(self, {"a finite number > 0": ("sigma",), "a finite number >= 0": ("sigma_min",)})


class OnePlusOne:
    """A parent, and a step size that keeps one candidate in five successful."""

    Settings: ClassVar[type[OnePlusOneSettings]] = OnePlusOneSettings
    grows: ClassVar[bool] = False

    @classmethod
    def memory(cls, settings: OnePlusOneSettings, num_params: int, popsize: int) -> SearchMemory:
        """The parent, and vectors of float64 in which figures are computed."""
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
        """The candidate, then its parent; FloatingPointError if they no longer differ."""
        check_spread(self._parent, self._sigma)
        return GaussianPopulation(self.mean, self._sigma, self._seed, generation, popsize=1, sampler="normal")

    def tell(
        self, population: Population, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """Keeps the better of the two; a failed one is worse than any other."""
        candidate, parent = np.where(np.isnan(fitness), -np.inf, fitness)
        before, sigma = self._parent, self._sigma
        if candidate >= parent and np.isfinite(candidate):
            self._parent = np.asarray(population.weights([0]))[0]
        if candidate != parent:
            self._sigma = sigma * exp((float(candidate > parent) - TARGET_SUCCESS_RATE) / self._damping)
            self._sigma = max(self._sigma, min(self._settings.sigma_min, sigma))
        return movement(sigma, before.astype(np.float64), self._parent.astype(np.float64))

    def state_dict(self) -> dict[str, np.ndarray]:
        """Parent and sigma."""
        return {"parent": self._parent.copy(), "sigma": np.array(self._sigma)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        arrays = matching(self.state_dict(), state)
        self._parent, self._sigma = arrays["parent"], arrays["sigma"].item()
