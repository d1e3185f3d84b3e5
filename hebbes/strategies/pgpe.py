"""PGPE: policy gradients with parameter-based exploration, antithetic pairs, one sigma per parameter, ClipUp.

Sehnke, Osendorfer, Rückstieß, Graves, Peters & Schmidhuber 2010, "Parameter-exploring policy gradients", Neural
Networks 23, with its symmetric sampling. Ranks, ClipUp and the limit on sigma's change follow Toklu, Liskowski &
Srivastava 2020, "ClipUp", arXiv 2008.02387. For N pairs of members x = mean +- sigma z with utilities u+ and u-:

    mean's gradient    1/N sum of (u+ - u-)/2 sigma z
    sigma's gradient   1/N sum of ((u+ + u-)/2 - b) sigma (z^2 - 1)

Both are the gradients of the likelihood times sigma^2, as with Sehnke's step sizes. The baseline b is the mean utility,
which is zero for centered ranks. A generation in which all members have the same utility, as in a tie, changes neither
the mean nor the momentum. The schedule of the learning rate advances.

Departure: ties share their mean rank. Those of Toklu et al. are ranked by position.
"""

from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import option
from hebbes.contracts.population import Population
from hebbes.contracts.search_space import Choice, LogUniform
from hebbes.contracts.strategy import Results
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.optimizers import OPTIMIZERS, OptimizerSettings, check_gradient
from hebbes.strategies.core.samplers import MIRRORED_SAMPLERS, check_members
from hebbes.strategies.core.schedules import SCHEDULES, LearningRateSettings
from hebbes.strategies.core.selection import all_tie
from hebbes.strategies.core.shaping import ShapingSettings

OTHER_LEARNING_RATE = 0.075
"""Default with other optimizers: only ClipUp's steps have the length of the learning rate."""


@dataclass(frozen=True)
class PGPESettings(LearningRateSettings, OptimizerSettings, ShapingSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    population_size: int = option(
        200, "perturbed members per generation, two per direction", range=">= 2", search=Choice((16, 32, 64, 128, 256))
    )
    sigma: float = option(
        0.1, "initial standard deviation of the noise on the weights", range="> 0", search=LogUniform(0.01, 0.5)
    )
    sigma_learning_rate: float = option(0.1, "learning rate of the sigmas", range=">= 0", search=LogUniform(0.01, 0.5))
    max_sigma_change: float = option(
        0.2, "largest change of a sigma in a generation, as a share of it", range="in [0, 1)"
    )
    learning_rate: float | None = option(  # type: ignore[assignment]  # wider than the base's
        None,
        "learning rate of the mean: the step size of clip_up and adam (default: half of max_speed if given, else "
        f"sigma * sqrt(number of weights) / 30; {OTHER_LEARNING_RATE} without clip_up)",
        range="> 0",
        search=LogUniform(0.01, 0.5),
    )
    learning_rate_schedule: str = option(
        "constant", "schedule of the learning rate from its start to its floor", choices=tuple(SCHEDULES)
    )
    optimizer: str = option("clip_up", "what turns gradients into steps", choices=tuple(OPTIMIZERS))
    sampler: str = option("antithetic", "how the noise of the members is drawn", choices=MIRRORED_SAMPLERS)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_members("population_size", self.population_size, self.sampler)

    def compute_learning_rate(self, num_params: int) -> float:
        """The learning rate for so many parameters.

        Toklu et al. take a maximum speed of a fifteenth of the radius (sigma times the root of the number of
        parameters), and half of it as ClipUp's learning rate. That is the length of a step, so it grows with them.
        """
        if self.learning_rate is not None:
            return self.learning_rate
        if self.optimizer != "clip_up":
            return OTHER_LEARNING_RATE
        return (self.sigma * sqrt(num_params) / 15 if self.max_speed is None else self.max_speed) / 2


class PGPE(GaussianStrategy):
    """A Gaussian with one sigma per parameter. Mean and sigmas follow the gradient of the expected utility."""

    Settings: ClassVar[type[PGPESettings]] = PGPESettings

    def __init__(self, settings: PGPESettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        settings = replace(settings, learning_rate=settings.compute_learning_rate(len(initial_mean)))
        self._optimizer = OPTIMIZERS[settings.optimizer](settings, len(initial_mean))
        self._learning_rate = settings.make_learning_rate_schedule()
        super().__init__(settings, initial_mean, seed, {"optimizer": self._optimizer, "lr": self._learning_rate})

    def tell(self, population: Population, results: Results) -> dict[str, float]:
        """Updates the mean and the sigmas; returns the metrics."""
        settings, fitness = self._settings, results.fitness[:-1]
        utilities = settings.shape(fitness)
        tied = all_tie(utilities)
        utilities = np.zeros_like(utilities) if tied else utilities - utilities.mean()
        (total, squares), agreement = self._sum_noise(results, utilities, powers=(1, 2))
        gradient = self._sigma * total / len(utilities)
        check_gradient(gradient)
        # sum u z^2 = sum u (z^2 - 1), because the utilities sum to zero
        sigma_gradient = self._sigma * squares / len(utilities)
        step = np.zeros_like(gradient) if tied else self._optimizer.step(gradient, self._learning_rate.value)
        metrics = {**self._move_mean(step, gradient, agreement, results), "learning_rate": self._learning_rate.value}
        limit = settings.max_sigma_change * self._sigma
        self._sigma = self._sigma + np.clip(settings.sigma_learning_rate * sigma_gradient, -limit, limit)
        self._learning_rate.advance()
        return metrics
