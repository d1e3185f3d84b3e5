"""What batch wrappers share: forwarding, checked settings, and env steps assembled from parts.

A wrapper is a BatchEnv around a BatchEnv. Row k of whatever it takes and returns belongs to copy `active[k]`, so
what it remembers is kept in arrays over all copies and indexed with `active`. Arrays that the inner environment
returned are never changed in place: it may still hold them.
"""

from dataclasses import replace
from math import inf
from typing import TypeAlias

import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Bool, Int, Shaped

from hebbes.contracts.environment import BatchEnv, EnvStep

Actions: TypeAlias = Shaped[np.ndarray, "active ..."]
Active: TypeAlias = Int[np.ndarray, " active"]
Observations: TypeAlias = Shaped[np.ndarray, "copies ..."]


class BatchWrapper:
    """Forwards everything to the environment inside; a wrapper overrides what it changes."""

    def __init__(self, env: BatchEnv) -> None:
        self.env = env
        self.num_copies = env.num_copies
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    def start(self, episode: int) -> Observations:
        """Begins one episode in every copy and returns the first observations."""
        return self.env.start(episode)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the copies named; row k of `actions` is for copy `active[k]`."""
        return self.env.step(actions, active)

    def render(self) -> Shaped[np.ndarray, "..."]:
        """What the environment inside renders; TypeError where it cannot."""
        render = getattr(self.env, "render", None)
        if render is None:
            raise TypeError(f"{type(self.env).__name__} cannot render")
        return render()

    def close(self) -> None:
        """Frees the simulators; calling it twice is harmless."""
        self.env.close()


class ObservationWrapper(BatchWrapper):
    """Changes observations one by one, without memory, by `transform`."""

    def transform(self, observations: Observations) -> Observations:
        """New observations, in an array of their own."""
        raise NotImplementedError

    def start(self, episode: int) -> Observations:
        """Begins one episode in every copy and returns the first observations, transformed."""
        return self.transform(self.env.start(episode))

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the copies named and transforms their observations."""
        env_step = self.env.step(actions, active)
        return replace(env_step, observations=self.transform(env_step.observations))


def has_ended(env_step: EnvStep) -> Bool[np.ndarray, " active"]:
    """Which rows end their episode, for whatever reason."""
    return env_step.terminated | env_step.truncated


def take_copies(env_step: EnvStep, copies: Int[np.ndarray, " taken"]) -> EnvStep:
    """The copies named of an env step of every copy, in arrays of their own."""
    return EnvStep(
        observations=env_step.observations[copies],
        rewards=env_step.rewards[copies],
        terminated=env_step.terminated[copies],
        truncated=env_step.truncated[copies],
        info={key: values[copies] for key, values in env_step.info.items()},
        faults={copy: reason for copy, reason in env_step.faults.items() if copy in copies},
    )


def with_rows(env_step: EnvStep, rows: Int[np.ndarray, " replaced"], part: EnvStep) -> EnvStep:
    """`env_step` with the rows named taken from `part`, in arrays of their own; only info that both carry is kept."""

    def merged(whole: np.ndarray, some: np.ndarray) -> np.ndarray:
        copy = whole.copy()
        copy[rows] = some
        return copy

    return EnvStep(
        observations=merged(env_step.observations, part.observations),
        rewards=merged(env_step.rewards, part.rewards),
        terminated=merged(env_step.terminated, part.terminated),
        truncated=merged(env_step.truncated, part.truncated),
        info={key: merged(values, part.info[key]) for key, values in env_step.info.items() if key in part.info},
        faults={**env_step.faults, **part.faults},
    )


def check_integer(option: str, value: object, *, at_least: int, at_most: float = inf) -> None:
    """Refuses what is not an integer of `at_least` or more, and of `at_most` or less."""
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
        allowed = f">= {at_least}" if at_most == inf else f"from {at_least} to {at_most}"
        raise ValueError(f"{option} must be an integer {allowed}, got {value!r}")


def float_box_actions(env: BatchEnv, wrapper: str) -> Box:
    """The action space, if it is a Box of floats."""
    space = env.action_space
    if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
        raise ValueError(f"{wrapper} needs a Box action space of floats, got {space}")
    return space


def uint8_images(env: BatchEnv, wrapper: str) -> tuple[int, int, int]:
    """(height, width, channels) of the observations, if they are uint8 images."""
    space = env.observation_space
    if not isinstance(space, Box) or space.dtype != np.uint8 or len(space.shape) != 3:
        raise ValueError(f"{wrapper} needs uint8 image observations of shape (height, width, channels), got {space}")
    height, width, channels = space.shape
    return height, width, channels
