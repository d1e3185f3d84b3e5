"""Optimizers: turn a gradient estimate of the fitness into a step of the mean, uphill."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from jaxtyping import Float64


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
