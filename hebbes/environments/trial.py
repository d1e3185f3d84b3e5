"""Tries an environment before a run or an evaluation: starts it, steps it once, and tells its spaces.

The simulators are those that are made only to learn about them. They are in this process, so that one that hangs or
crashes in its first env step is not replaced. Later a simulator that fails costs only its own episode.
"""

import sys
from contextlib import redirect_stderr
from io import StringIO

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Shaped

from hebbes.contracts.environment import BatchEnv, EnvStep, Space
from hebbes.contracts.errors import convert_foreign_exits, describe_error
from hebbes.environments.environment_options import ACTION_BOUNDS
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.morphologies import shorten_morphology_name
from hebbes.environments.stepping_guard import find_allowed_range
from hebbes.environments.wrapper_errors import check_actions
from hebbes.registry.users_classes import is_users_class


class FirstStepError(ValueError):
    """A simulator has failed in its first env step."""


def find_spaces(spec: EnvironmentSpec) -> tuple[gymnasium.Space, gymnasium.Space]:
    """Observation and action space of the environment with its wrappers; makes and starts one to learn them.

    ValueError if that fails in any morphology. So no run begins that could not play its first episode.
    """
    first, *others = [_find_spaces_of_morphology(spec, morphology) for morphology in spec.morphologies]
    for morphology, other in zip(spec.morphologies[1:], others, strict=True):
        if other != first:
            names = shorten_morphology_name(morphology), shorten_morphology_name(spec.morphologies[0])
            raise ValueError(f"morphologies: {names[0]!r} has the spaces {other}, but {names[1]!r} has {first}")
    return first


def _find_spaces_of_morphology(spec: EnvironmentSpec, morphology: str) -> tuple[gymnasium.Space, gymnasium.Space]:
    try:
        return _try_morphology(spec, morphology)
    except FirstStepError:  # a run bears that some simulators fail
        return _try_morphology(spec, morphology)


def _try_morphology(spec: EnvironmentSpec, morphology: str) -> tuple[gymnasium.Space, gymnasium.Space]:
    try:
        env = make_batch_env(spec, [0], threads=1, training=True, morphology=morphology)
    except ValueError:
        raise
    except Exception as error:  # a user's own environment or wrapper may raise anything
        raise _make_start_error(spec, error) from error
    try:
        start_and_check(env, spec)
    except FirstStepError:
        raise
    except Exception as error:
        raise _make_start_error(spec, error) from error
    finally:
        env.close()
    return env.observation_space, env.action_space  # type: ignore[return-value]  # they are Gymnasium's


def _make_start_error(spec: EnvironmentSpec, error: Exception) -> ValueError:
    """A ValueError whose one line names the environment."""
    reason = str(error) if isinstance(error, ValueError) else describe_error(error)
    named = f"environment {spec.environment!r}"
    return ValueError(reason if reason.startswith(named) else f"{named} cannot be started: {reason}")


def start_and_check(env: BatchEnv, spec: EnvironmentSpec) -> None:
    """Starts an environment, and steps it once if it or one of its wrappers may be a user's.

    FirstStepError, in one line, if the simulator fails in this env step or returns something invalid. ValueError that
    names the wrapper if a user's wrapper does so. What `start` raises passes.
    """
    env.start(0)
    users_wrappers = [each.name for each in spec.batch_wrappers if is_users_class(each.name)]
    if users_wrappers:
        check_actions(env.action_space, users_wrappers)
    elif spec.backend != "gymnasium":
        return
    env_step = _step_once(env, _make_allowed_action(env.action_space))
    if env_step.faults:
        raise FirstStepError(f"environment {spec.environment!r} fails in its first env step: {env_step.faults[0]}")


def check_accepts_unbounded_actions(spec: EnvironmentSpec, action_space: Box) -> None:
    """ValueError if the simulator refuses actions beyond their bounds, which `action_bounds none` may send.

    The action that is tried exceeds its upper bounds by the width of the bounds.
    """
    env = make_batch_env(spec, [0], threads=1, training=False)
    try:
        env.start(0)
        faults = _step_once(env, _make_action_beyond_bounds(action_space)).faults
    finally:
        env.close()
    if faults:
        allowed = ", ".join(name for name in ACTION_BOUNDS if name != "none")
        raise ValueError(
            f"action_bounds 'none' is not for {spec.environment}, whose simulator refuses actions beyond their bounds "
            f"({faults[0]}); allowed: {allowed}"
        )


def _step_once(env: BatchEnv, action: Shaped[np.ndarray, "*action"]) -> EnvStep:
    """An env step of the only sub-environment. If it fails, what it prints on standard error is left out."""
    with redirect_stderr(StringIO()) as said, convert_foreign_exits():  # the back end prints tracebacks
        env_step = env.step(action[np.newaxis], np.array([0]))
    if not env_step.faults and sys.stderr is not None:
        sys.stderr.write(said.getvalue())
    return env_step


def _make_allowed_action(space: Space) -> Shaped[np.ndarray, "*action"]:
    """The allowed action nearest to zero."""
    low, high = (space.low, space.high) if isinstance(space, Box) else find_allowed_range(space)  # type: ignore[misc]
    return np.asarray(np.clip(np.zeros(space.shape or ()), low, high), space.dtype)


def _make_action_beyond_bounds(space: Box) -> Shaped[np.ndarray, "*action"]:
    """An action beyond every upper bound, or beyond the lower bound where there is no upper one."""
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    width = np.where(space.bounded_below & space.bounded_above, high - low, 1.0)
    beyond = np.where(space.bounded_above, high + width, np.where(space.bounded_below, low - 1.0, 0.0))
    return beyond.astype(space.dtype)
