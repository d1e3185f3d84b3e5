"""Checks, before a run is made, whether a simulator accepts actions beyond their bounds."""

from contextlib import redirect_stderr
from io import StringIO

import numpy as np
from gymnasium.spaces import Box

from hebbes.environments.environment_options import ACTION_BOUNDS
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env


def check_accepts_unbounded_actions(spec: EnvironmentSpec, action_space: Box) -> None:
    """ValueError if the simulator refuses actions beyond their bounds, which `action_bounds none` may send.

    Makes one sub-environment and steps it once. The action exceeds its upper bounds by the width of the bounds.
    """
    env = make_batch_env(spec, [0], threads=1, training=False)
    try:
        env.start(0)
        with redirect_stderr(StringIO()):  # the back end prints tracebacks
            faults = env.step(_make_action_beyond_bounds(action_space)[np.newaxis], np.array([0])).faults
    finally:
        env.close()
    if faults:
        allowed = ", ".join(name for name in ACTION_BOUNDS if name != "none")
        raise ValueError(
            f"action_bounds 'none' is not for {spec.environment}, whose simulator refuses actions beyond their bounds "
            f"({faults[0]}); allowed: {allowed}"
        )


def _make_action_beyond_bounds(space: Box) -> np.ndarray:
    """An action beyond every upper bound, or beyond the lower bound where there is no upper one."""
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    width = np.where(space.bounded_below & space.bounded_above, high - low, 1.0)
    beyond = np.where(space.bounded_above, high + width, np.where(space.bounded_below, low - 1.0, 0.0))
    return beyond.astype(space.dtype)
