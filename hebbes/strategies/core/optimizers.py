"""Optimizers: turn an estimated gradient of the fitness into an uphill step of the mean."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.option import check_options, option
from hebbes.strategies.core.restoring import Restorable


def check_gradient(gradient: Float64[np.ndarray, " params"]) -> None:
    """FloatingPointError if the gradient's length overflows. Call it before an optimizer's step.

    Adam would make no more steps, because its second moment is infinite from then on.
    """
    if not isfinite(np.linalg.norm(gradient)):
        raise FloatingPointError("the gradient is too large to follow: the fitness may be too large")


class Optimizer(Restorable, ABC):
    """Turns gradients into steps, and keeps the state that it needs between them."""

    num_vectors: ClassVar[int]
    """Number of vectors of the mean's length that it keeps, in float64."""

    @abstractmethod
    def __init__(self, settings: "OptimizerSettings", num_params: int): ...

    @abstractmethod
    def step(self, gradient: Float64[np.ndarray, " params"], learning_rate: float) -> Float64[np.ndarray, " params"]:
        """The step to add to the mean."""


class SGD(Optimizer):
    """Gradient ascent with heavy-ball momentum: v = momentum v + g; step = learning_rate v (Polyak 1964)."""

    num_vectors: ClassVar[int] = 1
    STATE: ClassVar[Mapping[str, str]] = {"velocity": "_velocity"}

    def __init__(self, settings: "OptimizerSettings", num_params: int):
        self._velocity, self._momentum = np.zeros(num_params), settings.momentum

    def step(self, gradient: Float64[np.ndarray, " params"], learning_rate: float) -> Float64[np.ndarray, " params"]:
        """The step to add to the mean."""
        self._velocity = self._momentum * self._velocity + gradient
        return learning_rate * self._velocity


class Adam(Optimizer):
    """Adam with bias correction (Kingma & Ba 2015, arXiv 1412.6980, algorithm 1)."""

    EPSILON = 1e-8
    num_vectors: ClassVar[int] = 2
    STATE: ClassVar[Mapping[str, str]] = {"first": "_first", "second": "_second", "count": "_count"}

    def __init__(self, settings: "OptimizerSettings", num_params: int):
        self._betas = settings.adam_beta1, settings.adam_beta2
        self._first = np.zeros(num_params)
        self._second = np.zeros(num_params)
        self._count = 0

    def step(self, gradient: Float64[np.ndarray, " params"], learning_rate: float) -> Float64[np.ndarray, " params"]:
        """The step to add to the mean."""
        beta1, beta2 = self._betas
        self._count += 1
        self._first = beta1 * self._first + (1 - beta1) * gradient
        self._second = beta2 * self._second + (1 - beta2) * gradient**2
        first = self._first / (1 - beta1**self._count)
        second = self._second / (1 - beta2**self._count)
        return learning_rate * first / (np.sqrt(second) + self.EPSILON)


class ClipUp(SGD):
    """Normalized gradients, heavy-ball momentum, a limit on the length of a step (Toklu et al. 2020, arXiv 2008.02387).

    Algorithm 1: v = momentum v + learning_rate g / |g|, shortened to `max_speed` if it is longer. The step is v. Each
    gradient therefore adds a vector of length `learning_rate`. The default of `max_speed` is twice the current learning
    rate, as the paper advises, so it follows the schedule of the learning rate.
    """

    def __init__(self, settings: "OptimizerSettings", num_params: int):
        super().__init__(settings, num_params)
        self._momentum, self._max_speed = settings.clip_up_momentum, settings.max_speed

    def step(self, gradient: Float64[np.ndarray, " params"], learning_rate: float) -> Float64[np.ndarray, " params"]:
        """The step to add to the mean."""
        length = np.linalg.norm(gradient)
        velocity = self._momentum * self._velocity + (learning_rate / length * gradient if length > 0 else 0.0)
        limit, speed = 2 * learning_rate if self._max_speed is None else self._max_speed, np.linalg.norm(velocity)
        self._velocity = velocity * (limit / speed) if speed > limit else velocity
        return self._velocity


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "adam": Adam, "clip_up": ClipUp}


@dataclass(frozen=True)
class OptimizerSettings:
    """The choice of the optimizer, and the settings of each."""

    optimizer: str = option("sgd", "what turns gradients into steps", choices=tuple(OPTIMIZERS))
    momentum: float = option(0.0, "momentum of sgd", range="in [0, 1)", needs={"optimizer": ("sgd",)})
    adam_beta1: float = option(
        0.9, "Adam's decay of the first moment", range="in [0, 1)", needs={"optimizer": ("adam",)}
    )
    adam_beta2: float = option(
        0.999, "Adam's decay of the second moment", range="in [0, 1)", needs={"optimizer": ("adam",)}
    )
    clip_up_momentum: float = option(0.9, "momentum of clip_up", range="in [0, 1)", needs={"optimizer": ("clip_up",)})
    max_speed: float | None = option(
        None,
        "longest step of clip_up (default: twice the learning rate)",
        range="> 0",
        needs={"optimizer": ("clip_up",)},
    )

    def __post_init__(self) -> None:
        check_options(self)
