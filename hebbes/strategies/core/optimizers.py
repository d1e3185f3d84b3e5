"""Optimizers: turn a gradient estimate of the fitness into a step of the mean, uphill."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float64

from hebbes.strategies.core.ranges import check_ranges


class Optimizer(Protocol):
    """Holds what must survive between steps."""

    def step(self, gradient: Float64[np.ndarray, " params"], lr: float) -> Float64[np.ndarray, " params"]:
        """What to add to the mean."""

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that changes, as named arrays."""

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""


class Sgd:
    """Gradient ascent with heavy-ball momentum: v = momentum v + g; step = lr v (Polyak 1964)."""

    def __init__(self, num_params: int, momentum: float):
        self._momentum = momentum
        self._velocity = np.zeros(num_params)

    def step(self, gradient: Float64[np.ndarray, " params"], lr: float) -> Float64[np.ndarray, " params"]:
        """What to add to the mean."""
        self._velocity = self._momentum * self._velocity + gradient
        return lr * self._velocity

    def state_dict(self) -> dict[str, np.ndarray]:
        """The velocity."""
        return {"velocity": self._velocity}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        self._velocity = np.array(state["velocity"])


class Adam:
    """Adam with bias correction (Kingma & Ba 2015, arXiv 1412.6980, algorithm 1)."""

    EPSILON = 1e-8

    def __init__(self, num_params: int, beta1: float, beta2: float):
        self._betas = (beta1, beta2)
        self._first = np.zeros(num_params)
        self._second = np.zeros(num_params)
        self._count = 0

    def step(self, gradient: Float64[np.ndarray, " params"], lr: float) -> Float64[np.ndarray, " params"]:
        """What to add to the mean."""
        beta1, beta2 = self._betas
        self._count += 1
        self._first = beta1 * self._first + (1 - beta1) * gradient
        self._second = beta2 * self._second + (1 - beta2) * gradient**2
        first = self._first / (1 - beta1**self._count)
        second = self._second / (1 - beta2**self._count)
        return lr * first / (np.sqrt(second) + self.EPSILON)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Both moments and the number of steps taken."""
        return {"first": self._first, "second": self._second, "count": np.array(self._count)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        self._first, self._second = np.array(state["first"]), np.array(state["second"])
        self._count = int(state["count"])


class ClipUp:
    """Normalised gradients, heavy-ball momentum, a limit on the length of a step (Toklu et al. 2020, arXiv 2008.02387).

    Algorithm 1: v = momentum v + lr g / |g|, shortened to `max_speed` where it is longer; the step is v. So lr is the
    length of what one gradient adds. Where no `max_speed` is given it is twice the lr at hand, as the paper advises,
    and follows the lr's schedule.
    """

    def __init__(self, num_params: int, momentum: float, max_speed: float | None):
        self._momentum, self._max_speed = momentum, max_speed
        self._velocity = np.zeros(num_params)

    def step(self, gradient: Float64[np.ndarray, " params"], lr: float) -> Float64[np.ndarray, " params"]:
        """What to add to the mean."""
        length = np.linalg.norm(gradient)
        velocity = self._momentum * self._velocity + (lr / length * gradient if length > 0 else 0.0)
        limit, speed = 2 * lr if self._max_speed is None else self._max_speed, np.linalg.norm(velocity)
        self._velocity = velocity * (limit / speed) if speed > limit else velocity
        return self._velocity

    def state_dict(self) -> dict[str, np.ndarray]:
        """The velocity."""
        return {"velocity": self._velocity}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        self._velocity = np.array(state["velocity"])


OPTIMIZERS: dict[str, Callable[["OptimizerSettings", int], Optimizer]] = {
    "sgd": lambda settings, num_params: Sgd(num_params, settings.momentum),
    "adam": lambda settings, num_params: Adam(num_params, settings.adam_beta1, settings.adam_beta2),
    "clip_up": lambda settings, num_params: ClipUp(num_params, settings.clip_up_momentum, settings.max_speed),
}
"""How each is made from the settings and the number of parameters."""


def _option_of(optimizer: str, default: float | None, text: str) -> Any:
    """The field of a setting that one optimizer alone is told."""
    return field(default=default, metadata={"help": text, "needs": {"optimizer": (optimizer,)}})


@dataclass(frozen=True)
class OptimizerSettings:
    """Which optimizer, and what each of them is told."""

    optimizer: str = field(
        default="sgd", metadata={"help": "what turns gradients into steps", "choices": tuple(OPTIMIZERS)}
    )
    momentum: float = _option_of("sgd", 0.0, "momentum of sgd, in [0, 1)")
    adam_beta1: float = _option_of("adam", 0.9, "Adam's decay of the first moment, in [0, 1)")
    adam_beta2: float = _option_of("adam", 0.999, "Adam's decay of the second moment, in [0, 1)")
    clip_up_momentum: float = _option_of("clip_up", 0.9, "momentum of clip_up, in [0, 1)")
    max_speed: float | None = _option_of("clip_up", None, "longest step of clip_up (default: twice the learning rate)")

    def __post_init__(self) -> None:
        decays = ("momentum", "adam_beta1", "adam_beta2", "clip_up_momentum")
        check_ranges(self, {"in [0, 1)": decays, "a finite number > 0": ("max_speed",)})
