"""A Gaussian that moves whenever an individual has finished, as the asynchronous hybrids need it.

`sample` draws an individual. It may then be trained by gradients. `tell` takes it back with two returns: its own, and
that of the mean policy, against which it is judged.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.option import check_options, option
from hebbes.contracts.search_space import LogUniform
from hebbes.hybrids.variance_rules import MIN_VARIANCE
from hebbes.strategies.core.populations import GaussianPopulation
from hebbes.strategies.core.restoring import Restorable
from hebbes.strategies.core.spread import check_spread, compute_move_metrics


@dataclass(frozen=True)
class SearchSettings:
    """The start of the search."""

    initial_variance: float = option(
        1e-3,
        "initial variance of the noise on the weights; it adapts",
        range=f"in [{MIN_VARIANCE:g}, 1e50]",
        search=LogUniform(1e-4, 1e-2),
    )

    def __post_init__(self) -> None:
        check_options(self)


class SearchDistribution(Restorable, ABC):
    """A mean, and a variance for each parameter."""

    STATE: ClassVar[Mapping[str, str]] = {"mean": "_mean", "variance": "_variance"}

    own_metrics: ClassVar[tuple[str, ...]] = ()
    """The names of what `_update` returns."""

    def __init__(self, settings: SearchSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._seed = seed
        self._mean = np.array(initial_mean, np.float64)
        self._variance = np.full(len(initial_mean), settings.initial_variance)

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The mean policy's parameters."""
        return self._mean.astype(np.float32)

    def sample(self, number: int) -> Float32[np.ndarray, " params"]:
        """Individual `number` of the run, from the distribution as it is now.

        Its noise depends only on the seed and the number. FloatingPointError if the variance is too small or too large.
        """
        mean, sigma = self.mean, np.sqrt(self._variance)
        check_spread(mean, sigma)
        population = GaussianPopulation(mean, sigma, self._seed, number, population_size=1, sampler="normal")
        return np.asarray(population.weights([0]))[0]

    def tell(self, individual: Float32[np.ndarray, " params"], fitness: float, mean_fitness: float) -> dict[str, float]:
        """Moves the distribution, and returns the metrics.

        `mean_fitness` is the mean policy's return, as far as it is known. NaN is that of a failed episode, which is
        worse than any other.
        """
        before, sigma, deviation = self._mean.copy(), self._sigma, np.sqrt(self._variance)
        metrics = self._update(individual.astype(np.float64), fitness, mean_fitness)
        if metrics.keys() != set(self.own_metrics):
            raise ValueError(f"_update must return the metrics of own_metrics {self.own_metrics}, got {list(metrics)}")
        return {**compute_move_metrics(sigma, deviation, self._mean - before, self._mean), **metrics}

    def skip(self) -> dict[str, float]:
        """The metrics of an individual whose return moves nothing."""
        return {
            **compute_move_metrics(self._sigma, self._sigma, np.zeros_like(self._mean), self._mean),
            **dict.fromkeys(self.own_metrics, nan),
        }

    @property
    def _sigma(self) -> float:
        return float(np.sqrt(self._variance).mean())

    @abstractmethod
    def _update(
        self, individual: Float64[np.ndarray, " params"], fitness: float, mean_fitness: float
    ) -> dict[str, float]:
        """Moves mean and variance, and returns further metrics. NaN stands for a failed episode."""
