"""SNES: separable natural evolution strategy, natural gradient ascent on the mean and one sigma a parameter.

Schaul, Glasmachers & Schmidhuber 2011, "High dimensions and heavy tails for natural evolution strategies", GECCO;
Wierstra, Schaul, Glasmachers, Sun, Peters & Schmidhuber 2014, "Natural evolution strategies", JMLR 15, algorithm 6
and table 1. The defaults are theirs: 4 + 3 ln d members, each with noise of its own, learning rates of 1 for the mean
and (3 + ln d) / (5 sqrt d) for the sigmas. Twins (`--sampler antithetic`) are a setting; ties share the mean of their
utilities.
"""

from dataclasses import dataclass, field
from math import log, sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.population import Population
from hebbes.contracts.strategy import Combine
from hebbes.strategies.core.adaptive import AdaptiveSettings
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.ranges import check_ranges
from hebbes.strategies.core.samplers import SAMPLERS, check_members
from hebbes.strategies.core.shaping import nes_utilities


@dataclass(frozen=True)
class SNESSettings(AdaptiveSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    lr: float = field(default=1.0, metadata={"help": "learning rate of the mean, a share of the natural gradient"})
    sigma_lr: float | None = field(
        default=None,
        metadata={"help": "learning rate of the sigmas (default: (3 + ln d) / (5 sqrt d) for d parameters)"},
    )
    sampler: str = field(
        default="normal", metadata={"help": "how members come by their noise", "choices": tuple(SAMPLERS)}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.popsize is not None:
            check_members("popsize", self.popsize, self.sampler)
        check_ranges(self, {"a finite number > 0": ("lr",), "a finite number >= 0": ("sigma_lr",)})


class SNES(GaussianStrategy):
    """A Gaussian with a sigma for each parameter."""

    Settings: ClassVar[type[SNESSettings]] = SNESSettings

    def __init__(self, settings: SNESSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        d = len(initial_mean)
        self._lr = settings.lr
        self._sigma_lr = (3 + log(d)) / (5 * sqrt(d)) if settings.sigma_lr is None else settings.sigma_lr
        popsize = settings.members(d)
        twins = settings.popsize is None and SAMPLERS[settings.sampler].twins
        super().__init__(
            initial_mean,
            np.full(d, settings.sigma),
            seed,
            popsize=popsize + popsize % 2 if twins else popsize,
            sampler=settings.sampler,
            parts={},
        )

    def tell(
        self, population: Population, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """One step of the mean and one of the sigmas, both from the same members."""
        utilities = nes_utilities(fitness[:-1])
        total, agreement = self._noise_sum(population, utilities, combine)
        squares = combine(population, np.append(utilities, 0.0), power=2)  # less their sum, which is zero
        gradient = self._sigma * total
        figures = self._move(self._lr * gradient, gradient, agreement, fitness)
        self._sigma = self._sigma * np.exp(self._sigma_lr / 2 * squares)
        return figures
