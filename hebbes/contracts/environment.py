"""BatchEnv: many copies of one environment, stepped together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from gymnasium import Space
from jaxtyping import Bool, Float, Int, Shaped


@dataclass(frozen=True)
class EnvStep:
    """What one env step of some copies returned; row k of every array belongs to the k-th copy named."""

    observations: Shaped[np.ndarray, "active ..."]
    rewards: Float[np.ndarray, " active"]
    terminated: Bool[np.ndarray, " active"]
    truncated: Bool[np.ndarray, " active"]
    info: Mapping[str, Shaped[np.ndarray, "active ..."]]
    faults: Mapping[int, str] = field(default_factory=dict)
    """Copies whose simulator failed in this env step, and why. Their reward is NaN and they have terminated."""


class BatchEnv(Protocol):
    """Copies 0..num_copies-1 of one environment; batch wrappers have the same shape and nest."""

    num_copies: int
    observation_space: Space
    """Space of one copy's observation."""
    action_space: Space
    """Space of one copy's action."""

    def start(self, episode: int) -> Shaped[np.ndarray, "copies ..."]:
        """Begins one episode in every copy and returns the first observations.

        The start states are a function of the copies' seeds and the episode number (>= 0) alone.
        """

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        """Steps only the copies named (distinct, in any order); row k of `actions` is for copy `active[k]`.

        A copy whose episode has ended must not be named again before the next `start`.
        """

    def close(self) -> None:
        """Frees the simulators; calling it twice is harmless."""
