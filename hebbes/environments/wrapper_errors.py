"""Errors of a user's batch wrapper, told apart from those of the environment that it wraps.

What a wrapper returns is checked once before a run starts, and later only if something has failed: a check in every env
step would cost time.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from hebbes.contracts.engine import EngineError
from hebbes.contracts.environment import EnvStep, Space
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.registry.lookup import find_class
from hebbes.registry.users_classes import describe_users_error, is_users_class


class EnvStepError(ValueError):
    """A wrapper returned something other than an env step."""


def check_env_step(env_step: Any, num_active: int, space: Space) -> None:
    """EnvStepError unless `env_step` is an EnvStep with one row of observations of this space for each active one."""
    if not isinstance(env_step, EnvStep):
        raise EnvStepError(f"step must return an EnvStep, got {type(env_step).__name__}")
    check_observations(env_step.observations, num_active, space)
    _check_array("rewards", env_step.rewards, (num_active,), "biuf")
    _check_array("terminated", env_step.terminated, (num_active,), "b")
    _check_array("truncated", env_step.truncated, (num_active,), "b")


def check_observations(observations: Any, num_active: int, space: Space) -> None:
    """EnvStepError unless there is one row of observations of this space for each active sub-environment."""
    _check_array("observations", observations, (num_active, *(space.shape or ())), "biuf")


def check_actions(space: Space) -> None:
    """EnvStepError for actions that no policy chooses."""
    is_choice = isinstance(space, Discrete) and space.start == 0
    is_vector = isinstance(space, Box) and len(space.shape) == 1 and space.dtype.kind == "f"
    if not (is_choice or is_vector):
        raise EnvStepError(f"action_space must be a Discrete that starts at 0, or a vector of floats, got {space}")


def _check_array(what: str, array: Any, shape: tuple[int, ...], kinds: str) -> None:
    if not (isinstance(array, np.ndarray) and array.dtype.kind in kinds and array.shape == shape):
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        wanted = "bool" if kinds == "b" else "an array of numbers"
        raise EnvStepError(f"{what} must be {wanted} of shape {shape}, got {found}")


@contextmanager
def convert_wrapper_errors(spec: EnvironmentSpec, target: type[ValueError] | type[EngineError]) -> Iterator[None]:
    """Turns an exception in a method of a user's batch wrapper into `target`, in one line that names the wrapper.

    An EnvStepError names all wrappers of the user's, because any of them may be the cause.
    Others pass, such as those that a simulator raises while a wrapper steps it.
    """
    try:
        yield
    except EnvStepError as error:
        if names := list_users_wrappers(spec):
            raise target(f"wrappers {' or '.join(map(repr, names))} cannot be used: {error}") from error
        raise
    except Exception as error:
        if name := _find_raising_wrapper(error, spec):
            raise target(describe_users_error("wrappers", name, error)) from error
        raise


def _find_raising_wrapper(error: Exception, spec: EnvironmentSpec) -> str:
    """The name of the wrapper, if the innermost environment in the traceback is one of a user's; else empty."""
    names = {find_class("wrapper", each): each for each in list_users_wrappers(spec)}
    owners = [type(frame.f_locals.get("self")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((names.get(each, "") for each in reversed(owners) if each in names or hasattr(each, "step")), "")


def list_users_wrappers(spec: EnvironmentSpec) -> list[str]:
    """The names of the batch wrappers that are not ours."""
    return [each.name for each in spec.batch_wrappers if is_users_class(each.name)]
