"""ACEM-RL: the cross-entropy method of CEM-RL, made asynchronous. Each individual refits a Gaussian to the last ten.

Lee, Lee, Shin & Kweon 2020, "An Efficient Asynchronous Method for Integrating Evolutionary and Gradient-based Policy
Search", arXiv 2012.05417; code KyunghyunLee/aes-rl 5b69a06.
After Pourchot & Sigaud 2019, arXiv 1810.01222; equations from core/population.py of that code. The ring keeps the last
R = 10 individuals. Nothing moves until it is full, with the tenth. From then on, with the weights w of the best P = 5
in the ring and the mean mu before the move:

    e'  = tau e + (1 - tau) 1e-5            the extra variance, from 1e-3, with tau = 0.9^(1/R)
    mu' = mu + (sum w z - mu) / R
    s2' = (1/P) sum w (z - mu)^2 + e'

The weights are those of `hebbes.strategies.cem`: they fall with the logarithm of the rank. Departures, as there:
individuals that tie share their weights, failed ones have none, a ring in which all tie moves nothing (e falls all the
same), and a single survivor moves the mean alone.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.hybrids.asynchronous import Asynchronous
from hebbes.hybrids.search_distribution import SearchDistribution, SearchSettings
from hebbes.strategies.core.shaping import compute_elite_weights

RING_SIZE = 10
NUM_PARENTS = 5
EXTRA_VARIANCE_START = 1e-3
EXTRA_VARIANCE_LIMIT = 1e-5
EXTRA_VARIANCE_DECAY = 0.9 ** (1 / RING_SIZE)


class ACEM(SearchDistribution):
    """A Gaussian that is refitted to the best of the last individuals."""

    STATE: ClassVar[Mapping[str, str]] = {
        **{**SearchDistribution.STATE, "individuals": "_individuals", "fitness": "_fitness"},
        **{"num_told": "_num_told", "extra_variance": "_extra_variance"},
    }

    def __init__(self, settings: SearchSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        super().__init__(settings, initial_mean, seed)
        self._individuals = np.zeros((RING_SIZE, len(initial_mean)), np.float32)
        self._fitness = np.full(RING_SIZE, np.nan)
        self._num_told = 0
        self._extra_variance = EXTRA_VARIANCE_START

    def _update(
        self, individual: Float64[np.ndarray, " params"], fitness: float, mean_fitness: float
    ) -> dict[str, float]:
        place = self._num_told % RING_SIZE
        self._individuals[place], self._fitness[place] = individual, fitness
        self._num_told += 1
        if self._num_told >= RING_SIZE:
            self._extra_variance += (1 - EXTRA_VARIANCE_DECAY) * (EXTRA_VARIANCE_LIMIT - self._extra_variance)
            self._refit()
        return {}

    def _refit(self) -> None:
        """Moves mean and variance towards the best of the ring."""
        weights = compute_elite_weights(self._fitness, NUM_PARENTS)
        parents = np.flatnonzero(weights)  # failed individuals, whose weights may be NaN, are left out
        if len(parents) == 0:
            return
        steps = self._individuals[parents] - self._mean
        self._mean = self._mean + weights[parents] @ steps / RING_SIZE
        if len(parents) > 1:  # a single individual has no variance
            self._variance = weights[parents] @ steps**2 / NUM_PARENTS + self._extra_variance


class ACEMRL(Asynchronous):
    """Each individual refits the Gaussian to the best of the last ten."""

    Distribution: ClassVar[type[SearchDistribution]] = ACEM
