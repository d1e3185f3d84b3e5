"""What batch wrappers share: base classes, checks of settings, and functions that put env steps together.

A wrapper is a BatchEnv around a BatchEnv. Row k of the arrays that it takes and returns belongs to sub-environment
`active[k]`. So its memory is arrays over all sub-environments, indexed with `active`. It never changes arrays of the
inner environment in place, because that may still use them.
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
Observations: TypeAlias = Shaped[np.ndarray, "envs ..."]


class BatchWrapper:
    """Forwards everything to the inner environment. A wrapper overrides what it changes."""

    def __init__(self, env: BatchEnv) -> None:
        self.env = env
        self.num_envs = env.num_envs
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and returns the first observations."""
        return self.env.start(episode)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active`; row k of `actions` is for `active[k]`."""
        return self.env.step(actions, active)

    def render(self) -> Shaped[np.ndarray, "..."]:
        """The picture that the inner environment renders; TypeError if it cannot render."""
        render = getattr(self.env, "render", None)
        if render is None:
            raise TypeError(f"{type(self.env).__name__} cannot render")
        return render()

    def close(self) -> None:
        """Frees the simulators. It may be called twice."""
        self.env.close()


class ObservationWrapper(BatchWrapper):
    """Changes each observation by `transform`, without memory."""

    def transform(self, observations: Observations) -> Observations:
        """The new observations. The array given is not changed."""
        raise NotImplementedError

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and returns the first observations, transformed."""
        return self.transform(self.env.start(episode))

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` and transforms their observations."""
        env_step = self.env.step(actions, active)
        return replace(env_step, observations=self.transform(env_step.observations))


def has_ended(env_step: EnvStep) -> Bool[np.ndarray, " active"]:
    """True for each row whose episode has ended, by termination or truncation."""
    return env_step.terminated | env_step.truncated


def select_envs(env_step: EnvStep, envs: Int[np.ndarray, " selected"]) -> EnvStep:
    """The rows of `envs`, in new arrays, from an env step of all sub-environments."""
    return EnvStep(
        observations=env_step.observations[envs],
        rewards=env_step.rewards[envs],
        terminated=env_step.terminated[envs],
        truncated=env_step.truncated[envs],
        info={key: values[envs] for key, values in env_step.info.items()},
        faults={env: reason for env, reason in env_step.faults.items() if env in envs},
    )


def replace_rows(env_step: EnvStep, rows: Int[np.ndarray, " replaced"], part: EnvStep) -> EnvStep:
    """A new `env_step` whose `rows` are those of `part`. Only info that both have is kept."""

    def replace_in(whole: np.ndarray, new_rows: np.ndarray) -> np.ndarray:
        copy = whole.copy()
        copy[rows] = new_rows
        return copy

    return EnvStep(
        observations=replace_in(env_step.observations, part.observations),
        rewards=replace_in(env_step.rewards, part.rewards),
        terminated=replace_in(env_step.terminated, part.terminated),
        truncated=replace_in(env_step.truncated, part.truncated),
        info={key: replace_in(values, part.info[key]) for key, values in env_step.info.items() if key in part.info},
        faults={**env_step.faults, **part.faults},
    )


def check_integer(option: str, value: object, *, at_least: int, at_most: float = inf) -> None:
    """Raises ValueError unless `value` is an integer from `at_least` to `at_most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
        allowed = f">= {at_least}" if at_most == inf else f"from {at_least} to {at_most}"
        raise ValueError(f"{option} must be an integer {allowed}, got {value!r}")


def require_float_actions(env: BatchEnv, wrapper: str) -> Box:
    """The action space; ValueError unless it is a Box of floats."""
    space = env.action_space
    if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
        raise ValueError(f"{wrapper} needs a Box action space of floats, got {space}")
    return space


def require_uint8_images(env: BatchEnv, wrapper: str) -> tuple[int, int, int]:
    """(height, width, channels) of the observations; ValueError unless they are uint8 images."""
    space = env.observation_space
    if not isinstance(space, Box) or space.dtype != np.uint8 or len(space.shape) != 3:
        raise ValueError(f"{wrapper} needs uint8 image observations of shape (height, width, channels), got {space}")
    height, width, channels = space.shape
    return height, width, channels
