"""xNES: natural gradient ascent on mean and full covariance in exponential coordinates, for small policies.

Glasmachers, Schaul, Yi, Wierstra & Schmidhuber 2010, "Exponential Natural Evolution Strategies", GECCO, algorithm 1
with the constants of table 1. Members are mean + sigma B z with det B = 1. Departures: ties share their utility, and
failed members rank last. The last bits depend on the linear algebra library, and outside training on its number of
threads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.option import option
from hebbes.contracts.search_space import LogUniform
from hebbes.contracts.strategy import Results, SearchMemory
from hebbes.strategies.core.adaptive import AdaptiveSettings, check_memory
from hebbes.strategies.core.dense import DensePopulation, draw_noise, estimate_dense_memory
from hebbes.strategies.core.restoring import Restorable
from hebbes.strategies.core.selection import compute_tied_share
from hebbes.strategies.core.shaping import nes_utilities
from hebbes.strategies.core.spread import check_spread, compute_move_metrics

MATRICES = 10
"""Square matrices that an update holds at once: B and temporaries."""


@dataclass(frozen=True)
class XNESSettings(AdaptiveSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    learning_rate: float = option(1.0, "learning rate of the mean", range="> 0", search=LogUniform(0.1, 3.0))
    sigma_learning_rate: float | None = option(
        None, "learning rate of sigma (default: the paper's, from the number of parameters)", range="> 0"
    )
    shape_learning_rate: float | None = option(
        None, "learning rate of the covariance's shape (default: the paper's, as for sigma_learning_rate)", range="> 0"
    )


def compute_default_rate(num_params: int) -> float:
    """Default learning rate of sigma and of the shape: (9 + 3 ln d) / (5 d sqrt d), table 1."""
    return (9 + 3 * log(num_params)) / (5 * num_params * sqrt(num_params))


class XNES(Restorable):
    """A Gaussian with a full covariance that follows the natural gradient."""

    Settings: ClassVar[type[XNESSettings]] = XNESSettings
    STATE: ClassVar[Mapping[str, str]] = {"mean": "_mean", "sigma": "_sigma", "shape": "_shape"}
    grows: ClassVar[bool] = False

    @classmethod
    def memory(cls, settings: XNESSettings, num_params: int, population_size: int) -> SearchMemory:
        """Memory for the covariance's shape, the matrices of its update, and the members' rows."""
        return estimate_dense_memory(num_params, population_size, MATRICES)

    def __init__(self, settings: XNESSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        num_params = len(initial_mean)
        check_memory("xnes", num_params, settings.choose_population_size(num_params), MATRICES)
        rate = compute_default_rate(num_params)
        self._seed, self._learning_rate = seed, settings.learning_rate
        self._population_size = settings.choose_population_size(num_params)
        self._sigma_learning_rate = rate if settings.sigma_learning_rate is None else settings.sigma_learning_rate
        self._shape_learning_rate = rate if settings.shape_learning_rate is None else settings.shape_learning_rate
        self._mean = np.array(initial_mean, np.float64)
        self._sigma = settings.sigma
        self._shape = np.eye(num_params)

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The mean policy's parameters."""
        return self._mean.astype(np.float32)

    def _compute_deviations(self) -> Float64[np.ndarray, " params"]:
        return self._sigma * np.sqrt(np.square(self._shape).sum(axis=1))

    def ask(self, generation: int, num_members: int | None = None) -> DensePopulation:
        """The members around the mean, the mean policy last; FloatingPointError if they no longer differ from it."""
        check_spread(self.mean, self._compute_deviations())
        noise = draw_noise(self._seed, generation, range(self._population_size), len(self._mean))
        rows = self._mean + self._sigma * noise @ self._shape.T
        return DensePopulation(np.vstack([rows, self._mean]).astype(np.float32), self._seed, generation)

    def tell(self, population: DensePopulation, results: Results) -> dict[str, float]:
        """Updates mean, sigma and shape; returns the metrics, with sigma as the root mean square over the weights."""
        fitness = results.fitness[:-1]
        u, z = nes_utilities(fitness), population.noise(range(self._population_size))
        before, deviations = self._mean, self._compute_deviations()
        G_delta = u @ z  # algorithm 1: gradients in the natural coordinates delta and M
        G_M = (z.T * u) @ z - u.sum() * np.eye(len(before))
        G_sigma = np.trace(G_M) / len(before)
        G_B = G_M - G_sigma * np.eye(len(before))
        self._mean = before + self._learning_rate * self._sigma * (self._shape @ G_delta)
        self._sigma = float(self._sigma * np.exp(self._sigma_learning_rate / 2 * G_sigma))  # `ask` refuses inf
        self._shape = self._shape @ symmetric_exponential(self._shape_learning_rate / 2 * G_B)
        sigma = np.sqrt(np.square(deviations).mean())
        moved = compute_move_metrics(sigma, deviations, self._mean - before, self._mean)
        return {**moved, "tied_share": compute_tied_share(fitness)}


def symmetric_exponential(matrix: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n n"]:
    """The exponential of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.exp(values)) @ vectors.T
