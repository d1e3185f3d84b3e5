"""Schedules of the learning rate and of sigma over the generations, and a rule that shrinks sigma on evidence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import cos, inf, pi
from typing import ClassVar, TypeAlias

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.option import check_options, option
from hebbes.contracts.search_space import LogUniform
from hebbes.strategies.core.restoring import Restorable


@dataclass(frozen=True)
class ScheduleShape:
    """Where a value starts, and how it falls."""

    start: float
    floor: float
    """What the value falls to. A value that starts below its floor stays where it is."""
    factor: float
    """Factor per generation, of the exponential and the asymptotic schedule."""
    generations: int | None = None
    """Generations from start to floor, of the linear and cosine schedules."""

    @property
    def end(self) -> float:
        """The lowest value."""
        return min(self.start, self.floor)

    def compute_progress(self, generation: int) -> float:
        """Progress from start to floor, in [0, 1]."""
        assert self.generations is not None, "settings require it with such a schedule"
        return min(1.0, generation / self.generations)


ScheduleFunction: TypeAlias = Callable[[ScheduleShape, float, int], float]
"""Maps the shape, the previous generation's value and the generation to its value. Generation 0 has the start."""


def constant(shape: ScheduleShape, value: float, generation: int) -> float:
    """The start value."""
    return shape.start


def exponential(shape: ScheduleShape, value: float, generation: int) -> float:
    """The previous value times the factor, down to the floor."""
    return max(value * shape.factor, shape.end)


def asymptotic(shape: ScheduleShape, value: float, generation: int) -> float:
    """The distance to the floor times the factor: the value tends to the floor and never reaches it."""
    return value * shape.factor + shape.end * (1 - shape.factor)


def linear(shape: ScheduleShape, value: float, generation: int) -> float:
    """Down in equal steps."""
    return shape.start + (shape.end - shape.start) * shape.compute_progress(generation)


def cosine(shape: ScheduleShape, value: float, generation: int) -> float:
    """Down along half a cosine (Loshchilov & Hutter 2017, arXiv 1608.03983, eq. 5, without restarts)."""
    return shape.end + (shape.start - shape.end) * (1 + cos(pi * shape.compute_progress(generation))) / 2


SCHEDULES: dict[str, ScheduleFunction] = {
    "constant": constant,
    "exponential": exponential,
    "asymptotic": asymptotic,
    "linear": linear,
    "cosine": cosine,
}

FALLING = tuple(name for name in SCHEDULES if name != "constant")
"""Schedules that have a floor."""

WITH_FACTOR = ("exponential", "asymptotic")
"""Schedules that have a factor per generation."""

OVER_GENERATIONS = ("linear", "cosine")
"""Schedules that reach the floor after a given number of generations."""


class Schedule(Restorable):
    """A value that follows a schedule."""

    STATE: ClassVar[Mapping[str, str]] = {"value": "value", "generation": "_generation"}

    def __init__(self, schedule: str, shape: ScheduleShape):
        self._schedule, self._shape = SCHEDULES[schedule], shape
        self.value = shape.start
        self._generation = 0

    def advance(self) -> None:
        """Moves on to the next generation."""
        self._generation += 1
        self.value = self._schedule(self._shape, self.value, self._generation)


class FirstRankRule(Restorable):
    """Multiplies sigma by a factor whenever the mean policy has ranked first for `patience` generations in a row.

    Every member is then worse than the mean policy. Either the noise is too large for the landscape around it, or the
    differences among the members say nothing about that landscape. A tie for the first rank does not count, because
    smaller noise would not separate the members that tie. The rule is our own; pytorch-es reports the rank for the same
    reason.
    """

    STATE: ClassVar[Mapping[str, str]] = {"scale": "scale", "streak": "_streak"}

    def __init__(self, factor: float, patience: int):
        self._factor, self._patience = factor, patience
        self.scale = 1.0
        self._streak = 0

    def observe(self, fitness: Float64[np.ndarray, " members"]) -> None:
        """Updates `scale`, the factor on sigma, from the fitness of a generation, that of the mean policy last."""
        known = np.where(np.isnan(fitness), -inf, fitness)
        is_first = known[-1] > known[:-1].max()
        self._streak = self._streak + 1 if is_first else 0
        if self._streak == self._patience:
            self.scale, self._streak = self.scale * self._factor, 0


@dataclass(frozen=True)
class LearningRateSettings:
    """The learning rate and its schedule."""

    learning_rate: float = option(
        0.2,
        "learning rate: factor on the gradient with sgd, step size with the other optimizers",
        range="> 0",
        search=LogUniform(0.003, 1.0),
    )
    learning_rate_schedule: str = option(
        "exponential", "schedule of the learning rate from its start to its floor", choices=tuple(SCHEDULES)
    )
    learning_rate_decay: float = option(
        0.995,
        "factor per generation on the learning rate (exponential), or on its distance to the floor (asymptotic)",
        range="in (0, 1]",
        needs={"learning_rate_schedule": WITH_FACTOR},
    )
    learning_rate_min: float = option(
        0.001,
        "floor of the learning rate; a value that starts below it stays constant",
        range=">= 0",
        needs={"learning_rate_schedule": FALLING},
    )
    schedule_generations: int | None = option(
        None,
        "linear and cosine schedules: generations from start to floor",
        range=">= 1",
        needs={"learning_rate_schedule": OVER_GENERATIONS, "sigma_schedule": OVER_GENERATIONS},
    )

    def __post_init__(self) -> None:
        check_options(self)
        for name in ("learning_rate_schedule", "sigma_schedule"):
            schedule = getattr(self, name, "constant")
            if schedule in OVER_GENERATIONS and self.schedule_generations is None:
                raise ValueError(f"schedule_generations must be given with {name} {schedule}")

    def make_learning_rate_schedule(self) -> Schedule:
        """The schedule of the learning rate, at its start."""
        return Schedule(
            self.learning_rate_schedule,
            ScheduleShape(
                self.learning_rate, self.learning_rate_min, self.learning_rate_decay, self.schedule_generations
            ),
        )


@dataclass(frozen=True)
class ScheduledSettings(LearningRateSettings):
    """Learning rate and sigma with their schedules."""

    sigma: float = option(
        0.1, "standard deviation of the noise on the weights", range="> 0", search=LogUniform(0.01, 0.5)
    )
    sigma_schedule: str = option(
        "exponential", "schedule of sigma from its start to its floor", choices=tuple(SCHEDULES)
    )
    sigma_decay: float = option(
        0.999,
        "factor per generation on sigma (exponential), or on its distance to the floor (asymptotic)",
        range="in (0, 1]",
        needs={"sigma_schedule": WITH_FACTOR},
    )
    sigma_min: float = option(
        0.01,
        "floor of sigma; a value that starts below it stays constant",
        range=">= 0",
        needs={"sigma_schedule": FALLING, "sigma_adaptation": ()},
    )

    def make_sigma_schedule(self) -> Schedule:
        """The schedule of sigma, at its start."""
        return Schedule(
            self.sigma_schedule, ScheduleShape(self.sigma, self.sigma_min, self.sigma_decay, self.schedule_generations)
        )
