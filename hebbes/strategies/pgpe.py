"""PGPE: policy gradients with parameter-based exploration, symmetric samples, one sigma a parameter, ClipUp.

Sehnke, Osendorfer, Rückstieß, Graves, Peters & Schmidhuber 2010, "Parameter-exploring policy gradients", Neural
Networks 23, with its symmetric sampling; ranks, ClipUp and the limit on sigma's change follow Toklu, Liskowski &
Srivastava 2020, "ClipUp", arXiv 2008.02387. With members x = mean +- sigma z of utilities u+ and u-, N pairs:

    mean's gradient    1/N sum of (u+ - u-)/2 sigma z
    sigma's gradient   1/N sum of ((u+ + u-)/2 - b) sigma (z^2 - 1)

Both are the likelihood's gradients times sigma^2, as Sehnke's step sizes make them; the baseline b is the mean utility,
which is zero for centred ranks. A generation in which all members tie makes no step: momentum rests too.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.population import Population
from hebbes.contracts.strategy import Combine
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.optimizers import OPTIMIZERS, OptimizerSettings
from hebbes.strategies.core.ranges import check_ranges
from hebbes.strategies.core.samplers import TWIN_SAMPLERS, check_members
from hebbes.strategies.core.schedules import LrSettings, schedule_of
from hebbes.strategies.core.selection import all_tie
from hebbes.strategies.core.shaping import SHAPINGS, shaping, top_share_option


@dataclass(frozen=True)
class PGPESettings(LrSettings, OptimizerSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    popsize: int = field(default=200, metadata={"help": "perturbed members per generation, two a direction"})
    sigma: float = field(default=0.1, metadata={"help": "initial standard deviation of the noise on the weights"})
    sigma_lr: float = field(default=0.1, metadata={"help": "learning rate of sigma"})
    max_sigma_change: float = field(
        default=0.2, metadata={"help": "largest change of a sigma in a generation, as a share of it, in [0, 1)"}
    )
    lr: float = field(default=0.075, metadata={"help": "learning rate of the mean: the step size of clip_up and adam"})
    lr_schedule: str = schedule_of("the learning rate", "constant")
    optimizer: str = field(
        default="clip_up", metadata={"help": "what turns gradients into steps", "choices": tuple(OPTIMIZERS)}
    )
    sampler: str = field(
        default="antithetic",
        metadata={"help": "how members come by their noise", "choices": TWIN_SAMPLERS},
    )
    fitness_shaping: str = field(
        default="centered_rank", metadata={"help": "how fitness becomes utilities", "choices": tuple(SHAPINGS)}
    )
    top_share: float = top_share_option()

    def __post_init__(self) -> None:
        LrSettings.__post_init__(self)
        OptimizerSettings.__post_init__(self)
        check_members("popsize", self.popsize, self.sampler)
        check_ranges(
            self,
            {
                "a finite number > 0": ("sigma",),
                "a finite number >= 0": ("sigma_lr",),
                "in [0, 1)": ("max_sigma_change",),
                "in (0, 1]": ("top_share",),
            },
        )


class PGPE(GaussianStrategy):
    """A Gaussian with a sigma for each parameter, whose mean and sigmas follow the gradient of the expected utility."""

    Settings: ClassVar[type[PGPESettings]] = PGPESettings

    def __init__(self, settings: PGPESettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._settings = settings
        self._optimizer, self._lr = OPTIMIZERS[settings.optimizer](settings, len(initial_mean)), settings.lr_rate()
        super().__init__(
            initial_mean,
            np.full(len(initial_mean), settings.sigma),
            seed,
            popsize=settings.popsize,
            sampler=settings.sampler,
            parts={"optimizer": self._optimizer, "lr": self._lr},
        )

    def tell(
        self, population: Population, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """One step of the mean and one of the sigmas."""
        settings = self._settings
        utilities = shaping(settings.fitness_shaping, settings.top_share)(fitness[:-1])
        tied = all_tie(fitness[:-1])
        utilities = np.zeros_like(utilities) if tied else utilities - utilities.mean()
        total, agreement = self._noise_sum(population, utilities, combine)
        gradient = self._sigma * total / len(utilities)
        squares = combine(population, np.append(utilities, 0.0), power=2)  # less the utilities' sum, which is zero
        sigma_gradient = self._sigma * squares / len(utilities)
        step = np.zeros_like(gradient) if tied else self._optimizer.step(gradient, self._lr.value)
        figures = {**self._move(step, gradient, agreement, fitness), "lr": self._lr.value}
        limit = settings.max_sigma_change * self._sigma
        self._sigma = self._sigma + np.clip(settings.sigma_lr * sigma_gradient, -limit, limit)
        self._lr.advance()
        return figures
