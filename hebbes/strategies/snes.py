"""SNES: separable natural evolution strategy. Natural gradient ascent on the mean and one sigma per parameter.

Schaul, Glasmachers & Schmidhuber 2011, "High dimensions and heavy tails for natural evolution strategies", GECCO;
Wierstra, Schaul, Glasmachers, Sun, Peters & Schmidhuber 2014, "Natural evolution strategies", JMLR 15, algorithm 6
and table 1. The defaults are theirs: 4 + 3 ln d members with independent noise, learning rates of 1 for the mean and
(3 + ln d) / (5 sqrt d) for the sigmas. Departure: ties share the mean of their utilities. Antithetic pairs are a
setting (`--sampler antithetic`).
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import option
from hebbes.contracts.population import Population
from hebbes.contracts.search_space import LogUniform
from hebbes.contracts.strategy import Results
from hebbes.strategies.core.adaptive import AdaptiveSettings
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.samplers import SAMPLERS
from hebbes.strategies.core.shaping import nes_utilities


@dataclass(frozen=True)
class SNESSettings(AdaptiveSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    learning_rate: float = option(
        1.0, "learning rate of the mean: factor on the natural gradient", range="> 0", search=LogUniform(0.1, 3.0)
    )
    sigma_learning_rate: float | None = option(
        None, "learning rate of the sigmas (default: (3 + ln d) / (5 sqrt d) for d parameters)", range=">= 0"
    )
    sampler: str = option("normal", "how the noise of the members is drawn", choices=tuple(SAMPLERS))

    @property
    def has_pairs(self) -> bool:
        """Whether the sampler makes antithetic pairs."""
        return SAMPLERS[self.sampler].is_mirrored


class SNES(GaussianStrategy):
    """A Gaussian with one sigma per parameter."""

    Settings: ClassVar[type[SNESSettings]] = SNESSettings

    def __init__(self, settings: SNESSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        d = len(initial_mean)
        self._sigma_learning_rate = (
            (3 + log(d)) / (5 * sqrt(d)) if settings.sigma_learning_rate is None else settings.sigma_learning_rate
        )
        super().__init__(settings, initial_mean, seed, {})
        self._population_size = settings.choose_population_size(d)

    def tell(self, population: Population, results: Results) -> dict[str, float]:
        """Updates the mean and the sigmas from the same members; returns the metrics."""
        utilities = nes_utilities(results.fitness[:-1])
        # sum u z^2 = sum u (z^2 - 1), because the utilities sum to zero
        (total, squares), agreement = self._sum_noise(results, utilities, powers=(1, 2))
        gradient = self._sigma * total
        metrics = self._move_mean(self._settings.learning_rate * gradient, gradient, agreement, results)
        self._sigma = self._sigma * np.exp(self._sigma_learning_rate / 2 * squares)
        return metrics
