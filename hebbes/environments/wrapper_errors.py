"""Mistakes of a user's batch wrapper, told apart from those of the environment that it wraps."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gymnasium.spaces import Box, Discrete

from hebbes.contracts.engine import EngineError
from hebbes.contracts.environment import BatchEnv, EnvStep, Space
from hebbes.contracts.errors import close_part
from hebbes.contracts.plain_values import is_plain_array
from hebbes.environments.stepping_guard import EndedError
from hebbes.registry.users_classes import describe_users_error
from hebbes.wrappers.base import Actions, Active, Observations, has_ended

_WRAPPER, _NAME, _ENDED = "_guarded_wrapper", "_guarded_name", "_guarded_ended"


class WrapperError(EngineError, ValueError):
    """A user's batch wrapper has raised or returned something wrong. One line names it."""


class UsersWrapper:
    """Goes around a user's batch wrapper, and checks what it returns. All else is that of the wrapper."""

    def __init__(self, wrapper: BatchEnv, name: str):
        vars(self).update({_WRAPPER: wrapper, _NAME: name, _ENDED: set()})

    def __getattr__(self, name: str) -> Any:
        if name == _WRAPPER:  # while it is copied
            raise AttributeError(name)
        return getattr(vars(self)[_WRAPPER], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)[_WRAPPER], name, value)

    def start(self, episode: int) -> Observations:
        """The observations; WrapperError unless there is a row of the space for each sub-environment."""
        vars(self)[_ENDED].clear()
        with self._name_in_errors():
            observations = vars(self)[_WRAPPER].start(episode)
            check_observations(observations, self.num_envs, self.observation_space)
        return observations

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """The env step; WrapperError unless it is one."""
        with self._name_in_errors():
            env_step = vars(self)[_WRAPPER].step(actions, active)
            _check_env_step(env_step, len(active), self.observation_space)
        vars(self)[_ENDED].update(active[has_ended(env_step)].tolist())
        return env_step

    def close(self) -> None:
        """Frees the simulators. What the wrapper raises is shown, and goes no further."""
        close_part("a wrapper", vars(self)[_WRAPPER])

    @contextmanager
    def _name_in_errors(self) -> Iterator[None]:
        """Names the wrapper in what it raises. Others pass, such as those that a simulator raises while it is stepped.

        The innermost environment in the traceback has raised. An env step after the end of an episode comes from a
        wrapper that has not told of this end.
        """
        try:
            yield
        except Exception as error:
            owners = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
            innermost = next(each for each in reversed(owners) if _is_batch_env(each))
            hid_end = isinstance(error, EndedError) and not error.ids & vars(self)[_ENDED]
            if not (hid_end or innermost is self or innermost is vars(self)[_WRAPPER]):
                raise
            raise WrapperError(describe_users_error("wrappers", vars(self)[_NAME], error)) from error


def _is_batch_env(thing: object) -> bool:
    """Whether its class has the two calls of a BatchEnv. A helper of a wrapper may have something called step."""
    return hasattr(type(thing), "start") and hasattr(type(thing), "step")


def _check_env_step(env_step: Any, num_active: int, space: Space) -> None:
    if not isinstance(env_step, EnvStep):
        raise ValueError(f"step must return an EnvStep, got {type(env_step).__name__}")
    check_observations(env_step.observations, num_active, space)
    _check_array("rewards", env_step.rewards, (num_active,), "biuf")
    _check_array("terminated", env_step.terminated, (num_active,), "b")
    _check_array("truncated", env_step.truncated, (num_active,), "b")


def check_observations(observations: Any, num_active: int, space: Space) -> None:
    """ValueError unless there is one row of observations of this space for each active sub-environment."""
    _check_array("observations", observations, (num_active, *(space.shape or ())), "biuf")


def check_actions(space: Space, names: Sequence[str]) -> None:
    """ValueError for actions that no policy chooses. One of the user's wrappers of these names has made the space."""
    is_choice = isinstance(space, Discrete) and space.start == 0
    is_vector = isinstance(space, Box) and len(space.shape) == 1 and space.dtype.kind == "f"
    if not (is_choice or is_vector):
        raise ValueError(
            f"wrappers {' or '.join(map(repr, names))} cannot be used: action_space must be a Discrete that starts at "
            f"0, or a vector of floats, got {space}"
        )


def _check_array(what: str, array: Any, shape: tuple[int, ...], kinds: str) -> None:
    if not (is_plain_array(array) and array.dtype.kind in kinds and array.shape == shape):
        found = f"{array.dtype} of shape {array.shape}" if is_plain_array(array) else type(array).__name__
        wanted = "bool" if kinds == "b" else "an array of numbers"
        raise ValueError(f"{what} must be {wanted} of shape {shape}, got {found}")
