"""Actions beyond their bounds: whether a simulator takes them, found out before a run is made."""

from contextlib import redirect_stderr
from io import StringIO

import numpy as np
from gymnasium.spaces import Box

from hebbes.environments.spec import EnvironmentSpec, make_batch_env
from hebbes.training.config import HEADS_OF_BOUNDS


def check_takes_all(spec: EnvironmentSpec, action_space: Box) -> None:
    """Refuses, with ValueError, `action_bounds none` where the simulator refuses an action beyond its bounds.

    Makes one copy, and steps it once with an action as far beyond its upper bounds as these are above the lower ones.
    """
    env = make_batch_env(spec, [0], threads=1, training=False)
    try:
        env.start(0)
        with redirect_stderr(StringIO()):  # of the back end, which shows tracebacks
            faults = env.step(_beyond(action_space)[np.newaxis], np.array([0])).faults
    finally:
        env.close()
    if faults:
        allowed = ", ".join(name for name in HEADS_OF_BOUNDS if name != "none")
        raise ValueError(
            f"action_bounds 'none' is not for {spec.environment}, whose simulator refuses actions beyond their bounds "
            f"({faults[0]}); allowed: {allowed}"
        )


def _beyond(space: Box) -> np.ndarray:
    """An action beyond every bound that there is: the upper ones, or the lower one where it is the only one."""
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    width = np.where(space.bounded_below & space.bounded_above, high - low, 1.0)
    beyond = np.where(space.bounded_above, high + width, np.where(space.bounded_below, low - 1.0, 0.0))
    return beyond.astype(space.dtype)
