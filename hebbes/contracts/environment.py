"""BatchEnv: many sub-environments of one kind, stepped together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

MAX_FLOAT32 = float(np.finfo(np.float32).max)
"""Largest magnitude of a reward or of a number observed: policies and replays have them in float32."""


@dataclass(frozen=True)
class EnvStep:
    """The result of one env step of some sub-environments; row k of every array belongs to `active[k]`."""

    observations: Shaped[np.ndarray, "active ..."]
    rewards: Float[np.ndarray, " active"]
    terminated: Bool[np.ndarray, " active"]
    truncated: Bool[np.ndarray, " active"]
    info: Mapping[str, Shaped[np.ndarray, "active ..."]]
    faults: Mapping[int, str] = field(default_factory=dict)
    """Sub-environment -> why its simulator failed in this env step. Its reward is NaN and it has terminated."""


class Space(Protocol):
    """What the observations or the actions of one sub-environment can be. Every `gymnasium.Space` is one.

    A protocol, because modules that only describe environments must not wait for Gymnasium.
    """

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of a value; None if values are not arrays."""

    @property
    def dtype(self) -> np.dtype | None:
        """The type of the numbers in a value; None if values are not arrays."""

    def contains(self, x: Any, /) -> bool:
        """Whether a value is in the space."""

    def seed(self, seed: int, /) -> Any:
        """Begins the random numbers of `sample` anew."""

    def sample(self) -> Any:
        """A random value."""


class BatchEnv(Protocol):
    """Sub-environments 0..num_envs-1 of one environment. Batch wrappers implement it too, and can be nested."""

    num_envs: int
    observation_space: Space
    """Of one sub-environment."""
    action_space: Space
    """Of one sub-environment."""

    @property
    def seeds(self) -> Sequence[int]:
        """One of each sub-environment, in [0, 2^31)."""

    def start(self, episode: int) -> Shaped[np.ndarray, "envs ..."]:
        """The first observations of a new episode in every sub-environment.

        The start states, and all that is drawn in the episode, depend only on `seeds` and the episode number (>= 0).
        """

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        """Steps only the sub-environments in `active` (distinct, in any order), `active[k]` with row k of `actions`.

        One whose episode has ended must not be stepped again before the next `start`.
        """

    def close(self) -> None:
        """Frees the simulators. Calling it twice is harmless."""
