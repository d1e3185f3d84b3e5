"""OpenAI-ES: gradient ascent on the fitness smoothed by Gaussian noise.

Salimans, Ho, Chen, Sidor & Sutskever 2017, "Evolution Strategies as a Scalable Alternative to Reinforcement Learning",
arXiv 1703.03864, algorithm 1, with the defaults of Najarro & Risi's static-weight code (NeurIPS 2020,
arXiv 2007.02686). The defaults depart from the paper in three ways, all of them settings. Centered ranks are divided by
their standard deviation. Learning rate and sigma decay down to floors. A member's fitness loses `weight_penalty` times
its mean squared weight before the ranking.

Departures from that code:

- Ties share their mean rank. Theirs are ranked by position.
- A generation in which all members have the same utility, as in a tie, penalties included, changes neither the mean nor
  the momentum. Weight decay is not applied. The schedules advance.
- Learning rate and sigma stop at their floors, 0.001 and 0.01. Theirs are multiplied while they are above the floors,
  and so end up to one factor below.
- The weight penalty covers all searched parameters, in a plastic network too (`hebbes.policies.hebbian` has numbers).

With `divide_by_sigma` off, the update is that of es-torch:

    learning_rate / population_size sum(utility noise) - learning_rate weight_decay mean

This gradient is the paper's times sigma, so its learning rate is the paper's divided by sigma: 0.04 with sigma 0.025 is
0.001 with the option on.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import option
from hebbes.contracts.policy import Layout
from hebbes.contracts.population import NoisePopulation, Population
from hebbes.contracts.search_space import Choice, LogUniform
from hebbes.contracts.strategy import Results
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.low_rank import LowRankPopulation
from hebbes.strategies.core.optimizers import OPTIMIZERS, OptimizerSettings, check_gradient
from hebbes.strategies.core.restoring import Restorable
from hebbes.strategies.core.samplers import LOW_RANK, SAMPLERS, check_members
from hebbes.strategies.core.schedules import FirstRankRule, ScheduledSettings
from hebbes.strategies.core.selection import all_tie
from hebbes.strategies.core.shaping import SHAPINGS, ShapingSettings


@dataclass(frozen=True)
class OpenAIESSettings(ScheduledSettings, OptimizerSettings, ShapingSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    population_size: int = option(
        200,
        "perturbed members per generation; an even number if they are antithetic pairs",
        range=">= 2",
        search=Choice((16, 32, 64, 128, 256)),
    )
    sampler: str = option(
        "antithetic",
        "how the noise of the members is drawn; low_rank: as two factors per matrix",
        choices=(*SAMPLERS, LOW_RANK),
    )
    rank: int = option(
        1, "rank of the noise on a matrix with sampler low_rank", range=">= 1", needs={"sampler": (LOW_RANK,)}
    )
    fitness_shaping: str = option("centered_rank_normalized", "how fitness becomes utilities", choices=tuple(SHAPINGS))
    divide_by_sigma: bool = option(
        True,
        "divide the weighted noise sum by sigma, as in the gradient; no effect with clip_up unless weight_decay is set",
        needs={"optimizer": ("sgd", "adam"), "weight_decay": ()},
    )
    weight_decay: float = option(
        0.0, "coefficient of the decay of the mean towards zero", range=">= 0", search=LogUniform(0.0001, 0.1)
    )
    weight_penalty: float = option(
        0.01,
        "fitness that a member loses per unit of its mean squared weight",
        range=">= 0",
        search=LogUniform(0.0001, 0.1),
    )
    sigma_adaptation: float = option(
        1.0, "factor on sigma when the mean policy keeps ranking first; 1 turns it off", range="in (0, 1]"
    )
    sigma_patience: int = option(
        5,
        "consecutive generations in which the mean policy must rank first for sigma_adaptation",
        range=">= 1",
        needs={"sigma_adaptation": ()},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_members("population_size", self.population_size, self.sampler)


class OpenAIES(GaussianStrategy):
    """A Gaussian of fixed shape whose mean follows the natural gradient of the expected utility."""

    Settings: ClassVar[type[OpenAIESSettings]] = OpenAIESSettings
    has_sigma_per_parameter: ClassVar[bool] = False

    def __init__(self, settings: OpenAIESSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._optimizer = OPTIMIZERS[settings.optimizer](settings, len(initial_mean))
        self._learning_rate = settings.make_learning_rate_schedule()
        self._sigma_schedule = settings.make_sigma_schedule()
        self._first_rank = FirstRankRule(settings.sigma_adaptation, settings.sigma_patience)
        parts: dict[str, Restorable] = {"optimizer": self._optimizer, "lr": self._learning_rate}
        parts |= {"sigma_rate": self._sigma_schedule, "first_rank": self._first_rank}
        super().__init__(settings, initial_mean, seed, parts)
        self._layout: Layout | None = None

    def take_layout(self, layout: Layout) -> None:
        """Stores the policy's layout, because low-rank noise must know which parameters are matrices."""
        if layout.num_params != len(self._mean):
            raise ValueError(f"a layout of {layout.num_params} parameters for {len(self._mean)}")
        largest = max((min(layout.shapes[name]) for name in layout.matrices), default=1)
        if self._sampler == LOW_RANK and self._settings.rank > largest:
            reason = "the rank of the largest matrix" if layout.matrices else "because no matrix is searched"
            raise ValueError(f"rank must be <= {largest}, {reason}, got {self._settings.rank}")
        self._layout = layout

    def _make_population(self, generation: int, population_size: int) -> NoisePopulation:
        if self._sampler != LOW_RANK:
            return super()._make_population(generation, population_size)
        if self._layout is None:
            raise ValueError("sampler low_rank needs the policy's layout: call take_layout before ask")
        return LowRankPopulation(
            self.mean, float(self._sigma), self._seed, generation, population_size, self._layout, self._settings.rank
        )

    def tell(self, population: Population, results: Results) -> dict[str, float]:
        """Updates the mean, then advances the schedules of learning rate and sigma; returns the metrics."""
        settings = self._settings
        penalized = (results.fitness - settings.weight_penalty * results.mean_squared_weights)[:-1]
        utilities = settings.shape(penalized)
        (total,), agreement = self._sum_noise(results, utilities)
        scale = self._sigma if settings.divide_by_sigma else 1.0
        gradient = total / (len(utilities) * scale)  # algorithm 1, line 5
        check_gradient(gradient)
        step = np.zeros_like(gradient)
        if not all_tie(utilities):
            step = self._optimizer.step(gradient - settings.weight_decay * self._mean, self._learning_rate.value)
        metrics = {**self._move_mean(step, gradient, agreement, results), "learning_rate": self._learning_rate.value}
        self._learning_rate.advance()
        self._sigma_schedule.advance()
        self._first_rank.observe(results.fitness)
        floor = min(settings.sigma, settings.sigma_min)
        self._sigma = max(self._sigma_schedule.value * self._first_rank.scale, floor)
        return metrics
