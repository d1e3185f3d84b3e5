"""xNES: natural gradient ascent on mean and full covariance, in exponential coordinates; for small policies.

Glasmachers, Schaul, Yi, Wierstra & Schmidhuber 2010, "Exponential Natural Evolution Strategies", GECCO, algorithm 1
with the constants of table 1. Members are mean + sigma B z with det B = 1. Ties share their utility, failed members are
last. The last bits depend on the linear algebra library, and outside training on its number of threads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log, sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.strategy import Combine, SearchMemory
from hebbes.strategies.core.adaptive import AdaptiveSettings, check_memory, check_spread, movement
from hebbes.strategies.core.dense import DensePopulation, dense_memory, standard_noise
from hebbes.strategies.core.ranges import check_ranges
from hebbes.strategies.core.restoring import matching
from hebbes.strategies.core.selection import tied_share
from hebbes.strategies.core.shaping import nes_utilities

MATRICES = 10
"""B and the temporaries of its update, in memory at the same time."""


@dataclass(frozen=True)
class XNESSettings(AdaptiveSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    lr: float = field(default=1.0, metadata={"help": "learning rate of the mean"})
    sigma_lr: float | None = field(
        default=None, metadata={"help": "learning rate of sigma (default: that of the paper, by number of parameters)"}
    )
    shape_lr: float | None = field(
        default=None, metadata={"help": "learning rate of the covariance's shape (default: as sigma_lr's)"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, {"a finite number > 0": ("lr", "sigma_lr", "shape_lr")})


def default_rate(num_params: int) -> float:
    """Learning rate of sigma and of the shape: (9 + 3 ln d) / (5 d sqrt d), table 1."""
    return (9 + 3 * log(num_params)) / (5 * num_params * sqrt(num_params))


class XNES:
    """A Gaussian with a full covariance, moved along the natural gradient."""

    Settings: ClassVar[type[XNESSettings]] = XNESSettings
    grows: ClassVar[bool] = False

    @classmethod
    def memory(cls, settings: XNESSettings, num_params: int, popsize: int) -> SearchMemory:
        """The covariance's shape, the matrices of its update, and the members' rows."""
        return dense_memory(num_params, popsize, MATRICES)

    def __init__(self, settings: XNESSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        num_params = len(initial_mean)
        check_memory("xnes", num_params, settings.members(num_params), MATRICES)
        rate = default_rate(num_params)
        self._seed = seed
        self._popsize = settings.members(num_params)
        self._lr = settings.lr
        self._sigma_lr = rate if settings.sigma_lr is None else settings.sigma_lr
        self._shape_lr = rate if settings.shape_lr is None else settings.shape_lr
        self._mean = np.array(initial_mean, np.float64)
        self._sigma = settings.sigma
        self._shape = np.eye(num_params)

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The unperturbed policy's parameters."""
        return self._mean.astype(np.float32)

    def _deviations(self) -> Float64[np.ndarray, " params"]:
        return self._sigma * np.sqrt(np.square(self._shape).sum(axis=1))

    def ask(self, generation: int, num_members: int | None = None) -> DensePopulation:
        """Members around the mean, then the mean itself; FloatingPointError if they no longer differ from it."""
        check_spread(self.mean, self._deviations())
        noise = standard_noise(self._seed, generation, range(self._popsize), len(self._mean))
        rows = self._mean + self._sigma * noise @ self._shape.T
        return DensePopulation(np.vstack([rows, self._mean]).astype(np.float32), self._seed, generation)

    def tell(
        self, population: DensePopulation, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """One update of mean, sigma and shape; the sigma reported is the root mean square over the weights."""
        u, z = nes_utilities(fitness[:-1]), population.noise(range(self._popsize))
        before, deviation = self._mean, np.sqrt(np.square(self._deviations()).mean())
        G_delta = u @ z  # algorithm 1: gradients in the natural coordinates delta and M
        G_M = (z.T * u) @ z - u.sum() * np.eye(len(before))
        G_sigma = np.trace(G_M) / len(before)
        G_B = G_M - G_sigma * np.eye(len(before))
        self._mean = before + self._lr * self._sigma * (self._shape @ G_delta)
        self._sigma = self._sigma * exp(self._sigma_lr / 2 * G_sigma)
        self._shape = self._shape @ symmetric_exponential(self._shape_lr / 2 * G_B)
        return {**movement(deviation, before, self._mean), "tied_share": tied_share(fitness[:-1])}

    def state_dict(self) -> dict[str, np.ndarray]:
        """Mean, sigma and shape."""
        return {"mean": self._mean.copy(), "sigma": np.array(self._sigma), "shape": self._shape.copy()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        arrays = matching(self.state_dict(), state)
        self._mean, self._sigma, self._shape = arrays["mean"], arrays["sigma"].item(), arrays["shape"]


def symmetric_exponential(matrix: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n n"]:
    """The exponential of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.exp(values)) @ vectors.T
