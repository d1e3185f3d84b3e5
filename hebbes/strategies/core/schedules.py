"""Schedules: how learning rate and sigma change over the generations, and a rule that shrinks sigma on evidence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import cos, inf, pi
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64

from hebbes.strategies.core.ranges import check_ranges


@dataclass(frozen=True)
class Course:
    """Where a rate begins, and how it goes down."""

    start: float
    floor: float = 0.0
    """Where it ends; a rate that starts below its floor stays where it is."""
    factor: float = 1.0
    """Per generation, of the exponential schedule."""
    generations: int | None = None
    """From start to floor, of the linear and cosine ones."""

    @property
    def end(self) -> float:
        """The lowest value."""
        return min(self.start, self.floor)

    def part(self, generation: int) -> float:
        """How much of the way is behind, in [0, 1]."""
        assert self.generations is not None, "LrSettings has seen to it"
        return min(1.0, generation / self.generations)


Schedule: TypeAlias = Callable[[Course, float, int], float]
"""The rate in a generation, of its course, the rate in the generation before, and the number of those before it."""


def constant(course: Course, value: float, generation: int) -> float:
    """The start."""
    return course.start


def exponential(course: Course, value: float, generation: int) -> float:
    """The rate before times the factor, down to the floor."""
    return max(value * course.factor, course.end)


def linear(course: Course, value: float, generation: int) -> float:
    """Down in equal steps."""
    return course.start + (course.end - course.start) * course.part(generation)


def cosine(course: Course, value: float, generation: int) -> float:
    """Down along half a cosine (Loshchilov & Hutter 2017, arXiv 1608.03983, eq. 5, without restarts)."""
    return course.end + (course.start - course.end) * (1 + cos(pi * course.part(generation))) / 2


SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "exponential": exponential,
    "linear": linear,
    "cosine": cosine,
}

FALLING = tuple(name for name in SCHEDULES if name != "constant")
"""Those that have a floor."""

OVER_GENERATIONS = ("linear", "cosine")
"""Those that reach it after a given number of generations."""


class Rate:
    """A rate on its course."""

    def __init__(self, schedule: str, course: Course):
        self._schedule, self._course = SCHEDULES[schedule], course
        self.value = course.start
        self._generation = 0

    def advance(self) -> None:
        """Goes on to the next generation."""
        self._generation += 1
        self.value = self._schedule(self._course, self.value, self._generation)

    def state_dict(self) -> dict[str, np.ndarray]:
        """The value, and the number of generations behind it."""
        return {"value": np.array(self.value), "generation": np.array(self._generation)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        self.value, self._generation = float(state["value"]), int(state["generation"])


class FirstRankRule:
    """Multiplies sigma by a factor whenever the unperturbed policy has ranked first for some generations on end.

    Every member is then worse than the policy in its middle: the noise is too large for its surroundings, or the
    differences among the members say nothing about them. A tie for the first rank does not count, because smaller noise
    would not part those that tie. The rule is this toolkit's; pytorch-es reports the rank for the same reason.
    """

    def __init__(self, factor: float, patience: int):
        self._factor, self._patience = factor, patience
        self.scale = 1.0
        self._streak = 0

    def observe(self, fitness: Float64[np.ndarray, " members"]) -> None:
        """Takes a generation's fitness, the unperturbed policy's last; `scale` is what sigma is to be multiplied by."""
        known = np.where(np.isnan(fitness), -inf, fitness)
        is_first = known[-1] > known[:-1].max()
        self._streak = self._streak + 1 if is_first else 0
        if self._streak == self._patience:
            self.scale, self._streak = self.scale * self._factor, 0

    def state_dict(self) -> dict[str, np.ndarray]:
        """The scale, and how many generations on end the policy has ranked first."""
        return {"scale": np.array(self.scale), "streak": np.array(self._streak)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        self.scale, self._streak = float(state["scale"]), int(state["streak"])


def schedule_of(what: str, default: str) -> str:
    """The field of a dataclass of settings that names the schedule of a rate."""
    text = f"how {what} goes from its start to its floor"
    found: str = field(default=default, metadata={"help": text, "choices": tuple(SCHEDULES)})
    return found


def decay_of(what: str, schedule: str, default: float) -> float:
    """The field for the factor on a rate whose schedule is the field named."""
    text = f"exponential: factor on {what} per generation, in (0, 1]"
    found: float = field(default=default, metadata={"help": text, "needs": {schedule: ("exponential",)}})
    return found


def floor_of(what: str, default: float, needs: dict[str, tuple[str, ...]]) -> float:
    """The field for the floor of a rate, with the options that use it."""
    text = f"floor of {what}; one that starts below it stays there"
    found: float = field(default=default, metadata={"help": text, "needs": needs})
    return found


@dataclass(frozen=True)
class LrSettings:
    """The learning rate and its schedule."""

    lr: float = field(
        default=0.2, metadata={"help": "learning rate: sgd's factor on the gradient, or the others' step size"}
    )
    lr_schedule: str = schedule_of("the learning rate", "exponential")
    decay: float = decay_of("the learning rate", "lr_schedule", 0.995)
    lr_min: float = floor_of("the learning rate", 0.001, {"lr_schedule": FALLING})
    schedule_generations: int | None = field(
        default=None,
        metadata={
            "help": "linear and cosine schedules: generations from start to floor",
            "needs": {"lr_schedule": OVER_GENERATIONS, "sigma_schedule": OVER_GENERATIONS},
        },
    )

    def __post_init__(self) -> None:
        ranges = {"a finite number > 0": ("lr",), "a finite number >= 0": ("lr_min",)}
        check_ranges(self, {**ranges, "in (0, 1]": ("decay",)})
        for name in ("lr_schedule", "sigma_schedule"):
            schedule = getattr(self, name, "constant")
            if schedule in OVER_GENERATIONS and self.schedule_generations is None:
                raise ValueError(f"schedule_generations must be given with {name} {schedule}")
        if self.schedule_generations is not None and self.schedule_generations < 1:
            raise ValueError(f"schedule_generations must be >= 1, got {self.schedule_generations}")

    def lr_rate(self) -> Rate:
        """The learning rate at its start."""
        return Rate(self.lr_schedule, Course(self.lr, self.lr_min, self.decay, self.schedule_generations))


@dataclass(frozen=True)
class RateSettings(LrSettings):
    """Learning rate and sigma with their schedules."""

    sigma: float = field(default=0.1, metadata={"help": "standard deviation of the noise on the weights"})
    sigma_schedule: str = schedule_of("sigma", "exponential")
    sigma_decay: float = decay_of("sigma", "sigma_schedule", 0.999)
    sigma_min: float = floor_of("sigma", 0.01, {"sigma_schedule": FALLING, "sigma_adaptation": ()})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges = {"a finite number > 0": ("sigma",), "a finite number >= 0": ("sigma_min",)}
        check_ranges(self, {**ranges, "in (0, 1]": ("sigma_decay",)})

    def sigma_rate(self) -> Rate:
        """Sigma at its start."""
        return Rate(
            self.sigma_schedule, Course(self.sigma, self.sigma_min, self.sigma_decay, self.schedule_generations)
        )
