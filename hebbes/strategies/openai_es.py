"""OpenAI-ES: gradient ascent on the fitness smoothed by Gaussian noise.

Salimans, Ho, Chen, Sidor & Sutskever 2017, "Evolution Strategies as a Scalable Alternative to Reinforcement Learning",
arXiv 1703.03864, algorithm 1, with the defaults of Najarro & Risi's static-weight code (NeurIPS 2020,
arXiv 2007.02686). The defaults depart from the paper in three ways, all of them settings: centred ranks are divided by
their deviation; learning rate and sigma decay down to floors; and a member's fitness loses `weight_penalty` times its
mean squared weight before the ranking.

Departures from that code:

- Ties share their mean rank; theirs are ranked by position. A generation in which all members tie, penalties included,
  makes no step: momentum and weight decay rest too, the schedules go on.
- Learning rate and sigma stop at their floors, 0.001 and 0.01. Theirs are multiplied as long as they are above, and so
  end up to one factor below.
- The weight penalty covers all searched parameters, in a plastic network too (`hebbes.policies.hebbian` has the figures).

`divide_by_sigma` off is the update of es-torch, lr / popsize sum(utility noise) - lr weight_decay mean: the paper's
times sigma, so that its learning rates are to be compared with lr / sigma here.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.policy import Layout
from hebbes.contracts.population import Population
from hebbes.contracts.strategy import Combine, SearchMemory
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.low_rank import LowRankPopulation, mean_squares
from hebbes.strategies.core.optimizers import OPTIMIZERS, OptimizerSettings
from hebbes.strategies.core.ranges import check_ranges
from hebbes.strategies.core.samplers import LOW_RANK, SAMPLERS, check_members
from hebbes.strategies.core.schedules import FirstRankRule, RateSettings
from hebbes.strategies.core.selection import all_tie
from hebbes.strategies.core.shaping import SHAPINGS, shaping, top_share_option

PENALTY_BLOCK = 16
"""Members whose weights are made at once for the weight penalty; bounds the memory that it takes."""


@dataclass(frozen=True)
class OpenAIESSettings(RateSettings, OptimizerSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    popsize: int = field(default=200, metadata={"help": "perturbed members per generation, even where they are twins"})
    sampler: str = field(
        default="antithetic",
        metadata={
            "help": "how members come by their noise; low_rank: as two factors for each matrix",
            "choices": (*SAMPLERS, LOW_RANK),
        },
    )
    rank: int = field(
        default=1,
        metadata={"help": "rank of the noise on a matrix with sampler low_rank", "needs": {"sampler": (LOW_RANK,)}},
    )
    fitness_shaping: str = field(
        default="centered_rank_normalized",
        metadata={"help": "how fitness becomes utilities", "choices": tuple(SHAPINGS)},
    )
    top_share: float = top_share_option()
    divide_by_sigma: bool = field(
        default=True,
        metadata={
            "help": "divide the sum of the noise by sigma, as the gradient has it; clip_up's steps have one length",
            "needs": {"optimizer": ("sgd", "adam"), "weight_decay": ()},
        },
    )
    weight_decay: float = field(default=0.0, metadata={"help": "coefficient of the pull of the mean towards zero"})
    weight_penalty: float = field(
        default=0.01, metadata={"help": "fitness that a member loses per unit of its mean squared weight"}
    )
    sigma_adaptation: float = field(
        default=1.0,
        metadata={"help": "factor on sigma when the unperturbed policy keeps ranking first, in (0, 1]; 1 is off"},
    )
    sigma_patience: int = field(
        default=5,
        metadata={
            "help": "generations on end that it must rank first for sigma_adaptation",
            "needs": {"sigma_adaptation": ()},
        },
    )

    def __post_init__(self) -> None:
        RateSettings.__post_init__(self)
        OptimizerSettings.__post_init__(self)
        check_members("popsize", self.popsize, self.sampler)
        shares, decays = ("top_share", "sigma_adaptation"), ("weight_decay", "weight_penalty")
        check_ranges(self, {"in (0, 1]": shares, "a finite number >= 0": decays})
        for name in ("sigma_patience", "rank"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)}")


class OpenAIES(GaussianStrategy):
    """A Gaussian of fixed shape whose mean follows the natural gradient of the expected utility."""

    Settings: ClassVar[type[OpenAIESSettings]] = OpenAIESSettings
    sigma_per_parameter: ClassVar[bool] = False

    @classmethod
    def memory(cls, settings: OpenAIESSettings, num_params: int, popsize: int) -> SearchMemory:
        """As that of its kind; the weight penalty squares the weights of a block of members."""
        penalized = settings.weight_penalty > 0 and settings.sampler != LOW_RANK
        block = 2 * 4 * min(PENALTY_BLOCK, popsize) * num_params
        return replace(super().memory(settings, num_params, popsize), update=block * penalized)

    def __init__(self, settings: OpenAIESSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._settings = settings
        self._optimizer = OPTIMIZERS[settings.optimizer](settings, len(initial_mean))
        self._lr, self._sigma_rate = settings.lr_rate(), settings.sigma_rate()
        self._first_rank = FirstRankRule(settings.sigma_adaptation, settings.sigma_patience)
        super().__init__(
            initial_mean,
            settings.sigma,
            seed,
            popsize=settings.popsize,
            sampler=settings.sampler,
            parts={
                "optimizer": self._optimizer,
                "lr": self._lr,
                "sigma_rate": self._sigma_rate,
                "first_rank": self._first_rank,
            },
        )
        self._layout: Layout | None = None

    def take_layout(self, layout: Layout) -> None:
        """Says which parameters are matrices, which low-rank noise has to know."""
        if layout.num_params != len(self._mean):
            raise ValueError(f"a layout of {layout.num_params} parameters for {len(self._mean)}")
        largest = max((min(layout.shapes[name]) for name in layout.matrices), default=1)
        if self._sampler == LOW_RANK and self._settings.rank > largest:
            raise ValueError(f"rank must be <= {largest}, the rank of the largest matrix, got {self._settings.rank}")
        self._layout = layout

    def _population(self, generation: int, popsize: int) -> Population:
        if self._sampler != LOW_RANK:
            return super()._population(generation, popsize)
        if self._layout is None:
            raise ValueError("sampler low_rank needs the policy's layout: call take_layout before ask")
        return LowRankPopulation(
            self.mean, float(self._sigma), self._seed, generation, popsize, self._layout, self._settings.rank
        )

    def tell(
        self, population: Population, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """One step of the mean, then one of the schedules of learning rate and sigma."""
        settings = self._settings
        penalised = fitness[:-1] - self._penalties(population)
        utilities = shaping(settings.fitness_shaping, settings.top_share)(penalised)
        total, agreement = self._noise_sum(population, utilities, combine)
        scale = self._sigma if settings.divide_by_sigma else 1.0
        gradient = total / (len(utilities) * scale)  # algorithm 1, line 5
        step = np.zeros_like(gradient)
        if not all_tie(penalised):
            step = self._optimizer.step(gradient - settings.weight_decay * self._mean, self._lr.value)
        figures = {**self._move(step, gradient, agreement, fitness), "lr": self._lr.value}
        self._advance(fitness)
        return figures

    def _advance(self, fitness: Float64[np.ndarray, " members"]) -> None:
        """Takes learning rate and sigma to the next generation."""
        self._lr.advance()
        self._sigma_rate.advance()
        self._first_rank.observe(fitness)
        floor = min(self._settings.sigma, self._settings.sigma_min)
        self._sigma = max(self._sigma_rate.value * self._first_rank.scale, floor)

    def _penalties(self, population: Population) -> Float64[np.ndarray, " members"]:
        """What each perturbed member's fitness loses for its weights."""
        penalties = np.zeros(len(population) - 1)
        if self._settings.weight_penalty > 0:
            for start in range(0, len(penalties), PENALTY_BLOCK):
                block = range(start, min(start + PENALTY_BLOCK, len(penalties)))
                squares = mean_squares(population.weights(block))
                penalties[block.start : block.stop] = self._settings.weight_penalty * squares
        return penalties
