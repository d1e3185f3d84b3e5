"""Tallies of an episode: the time that policy and simulator took, and how many numbers of its actions were saturated.

A number close to a bound of the action space is saturated: a small change of the policy has no effect there.
"""

from time import perf_counter
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Shaped

from hebbes.contracts.environment import BatchEnv
from hebbes.execution.kernels import env_steps

MARGIN = 0.01
"""Numbers this close to a bound are saturated; a fraction of the range between the bounds."""


class Tallies:
    """Sums over the env steps of an episode, under the names of `hebbes.contracts.engine.Rollouts.tallies`."""

    def __init__(self, env: BatchEnv):
        """Takes the bounds from the outermost wrapper, or the environment, that has any."""
        self._bounds = _find_saturation_bounds(env)
        self.sums = {"saturated_actions": 0.0, "bounded_actions": 0.0, "policy_seconds": 0.0, "simulator_seconds": 0.0}

    def record_policy_time(self, begun: float) -> None:
        """Adds the time since `begun`, a time of `perf_counter`, to that of the policy."""
        self.sums["policy_seconds"] += perf_counter() - begun

    def record(self, actions: Shaped[np.ndarray, "active ..."], begun: float) -> None:
        """Adds the time since `begun` to that of the simulator, and counts saturated numbers."""
        self.sums["simulator_seconds"] += perf_counter() - begun
        if self._bounds is not None:
            low, high = self._bounds
            rows = actions.reshape(len(actions), len(low)).astype(low.dtype, copy=False)
            self.sums["saturated_actions"] += env_steps.count_outside(rows, low, high)
            self.sums["bounded_actions"] += actions.size


def _find_saturation_bounds(env: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The values below and above which actions are saturated.

    None if actions are not continuous, have no bounds, or are not those of the simulator.
    """
    outermost = env.action_space
    while not (isinstance(env.action_space, Box) and env.action_space.is_bounded()):
        env = getattr(env, "env", None)
        if env is None:
            return None
    space = env.action_space
    if space.dtype.kind != "f" or not isinstance(outermost, Box) or np.prod(outermost.shape) != np.prod(space.shape):
        return None
    dtype: type[Any] = np.float64 if space.dtype.itemsize > 4 else np.float32  # those of the compiled count
    low, high = space.low.astype(dtype).ravel(), space.high.astype(dtype).ravel()
    margin = MARGIN * high - MARGIN * low  # the range itself may be infinite
    return low + margin, high - margin
