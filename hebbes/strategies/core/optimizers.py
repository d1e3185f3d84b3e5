"""Optimizers: turn an estimated gradient of the fitness into an uphill step of the mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.option import option
from hebbes.strategies.core.ranges import check_ranges


class Optimizer(Protocol):
    """Turns gradients into steps, and keeps the state that it needs between them."""

    def step(self, gradient: Float64[np.ndarray, " params"], learning_rate: float) -> Float64[np.ndarray, " params"]:
        """The step to add to the mean."""

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that changes, as named arrays."""

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` returned."""


class SGD:
    """Gradient ascent with heavy-ball momentum: v = momentum v + g; step = learning_rate v (Polyak 1964)."""

    def __init__(self, num_params: int, momentum: float):
        self._momentum = momentum
        self._velocity = np.zeros(num_params)

    def step(self, gradient: Float64[np.ndarray, " params"], learning_rate: float) -> Float64[np.ndarray, " params"]:
        """The step to add to the mean."""
        self._velocity = self._momentum * self._velocity + gradient
        return learning_rate * self._velocity

    def state_dict(self) -> dict[str, np.ndarray]:
        """The velocity."""
        return {"velocity": self._velocity}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` returned."""
        self._velocity = np.array(state["velocity"])


class Adam:
    """Adam with bias correction (Kingma & Ba 2015, arXiv 1412.6980, algorithm 1)."""

    EPSILON = 1e-8

    def __init__(self, num_params: int, beta1: float, beta2: float):
        self._betas = (beta1, beta2)
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

    def state_dict(self) -> dict[str, np.ndarray]:
        """Both moments and the number of steps so far."""
        return {"first": self._first, "second": self._second, "count": np.array(self._count)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` returned."""
        self._first, self._second = np.array(state["first"]), np.array(state["second"])
        self._count = int(state["count"])


class ClipUp:
    """Normalized gradients, heavy-ball momentum, a limit on the length of a step (Toklu et al. 2020, arXiv 2008.02387).

    Algorithm 1: v = momentum v + learning_rate g / |g|, shortened to `max_speed` if it is longer. The step is v. Each
    gradient therefore adds a vector of length `learning_rate`. The default of `max_speed` is twice the current learning
    rate, as the paper advises, so it follows the schedule of the learning rate.
    """

    def __init__(self, num_params: int, momentum: float, max_speed: float | None):
        self._momentum, self._max_speed = momentum, max_speed
        self._velocity = np.zeros(num_params)

    def step(self, gradient: Float64[np.ndarray, " params"], learning_rate: float) -> Float64[np.ndarray, " params"]:
        """The step to add to the mean."""
        length = np.linalg.norm(gradient)
        velocity = self._momentum * self._velocity + (learning_rate / length * gradient if length > 0 else 0.0)
        limit, speed = 2 * learning_rate if self._max_speed is None else self._max_speed, np.linalg.norm(velocity)
        self._velocity = velocity * (limit / speed) if speed > limit else velocity
        return self._velocity

    def state_dict(self) -> dict[str, np.ndarray]:
        """The velocity."""
        return {"velocity": self._velocity}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` returned."""
        self._velocity = np.array(state["velocity"])


OPTIMIZERS: dict[str, Callable[["OptimizerSettings", int], Optimizer]] = {
    "sgd": lambda settings, num_params: SGD(num_params, settings.momentum),
    "adam": lambda settings, num_params: Adam(num_params, settings.adam_beta1, settings.adam_beta2),
    "clip_up": lambda settings, num_params: ClipUp(num_params, settings.clip_up_momentum, settings.max_speed),
}
"""Name -> function that makes the optimizer from the settings and the number of parameters."""


def _optimizer_option(optimizer: str, default: float | None, text: str) -> Any:
    """The field of a setting that only one optimizer uses."""
    return option(default, text, needs={"optimizer": (optimizer,)})


@dataclass(frozen=True)
class OptimizerSettings:
    """The choice of the optimizer, and the settings of each."""

    optimizer: str = option("sgd", "what turns gradients into steps", choices=tuple(OPTIMIZERS))
    momentum: float = _optimizer_option("sgd", 0.0, "momentum of sgd, in [0, 1)")
    adam_beta1: float = _optimizer_option("adam", 0.9, "Adam's decay of the first moment, in [0, 1)")
    adam_beta2: float = _optimizer_option("adam", 0.999, "Adam's decay of the second moment, in [0, 1)")
    clip_up_momentum: float = _optimizer_option("clip_up", 0.9, "momentum of clip_up, in [0, 1)")
    max_speed: float | None = _optimizer_option(
        "clip_up", None, "longest step of clip_up (default: twice the learning rate)"
    )

    def __post_init__(self) -> None:
        decays = ("momentum", "adam_beta1", "adam_beta2", "clip_up_momentum")
        check_ranges(self, {"in [0, 1)": decays, "a finite number > 0": ("max_speed",)})
