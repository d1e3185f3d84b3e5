"""Tallies of an episode: where its time went, and how many numbers of its actions were saturated.

A number at the bounds of the action space is saturated: a small change of the policy changes nothing there.
"""

from time import perf_counter
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Int, Shaped

from hebbes.contracts.environment import BatchEnv, EnvStep

MARGIN = 0.01
"""Of the range between the bounds: how near to one of them counts."""


class Tallies:
    """Sums over the env steps of an episode, by the names of `hebbes.contracts.engine.Rollouts.tallies`."""

    def __init__(self, env: BatchEnv):
        """The bounds are those of the outermost of the environment and its wrappers that has any."""
        self._env, self._bounds = env, _bounds(env)
        self.sums = {"saturated_actions": 0.0, "bounded_actions": 0.0, "policy_seconds": 0.0, "simulator_seconds": 0.0}

    def acted(self, begun: float) -> None:
        """The policy has acted since this time of `perf_counter`."""
        self.sums["policy_seconds"] += perf_counter() - begun

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        """Steps the environment."""
        begun = perf_counter()
        stepped = self._env.step(actions, active)
        self.sums["simulator_seconds"] += perf_counter() - begun
        if self._bounds is not None:
            low, high = self._bounds
            self.sums["saturated_actions"] += int(np.count_nonzero((actions <= low) | (actions >= high)))
            self.sums["bounded_actions"] += actions.size
        return stepped


def _bounds(env: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Where actions begin to be saturated, below and above; None where they are not continuous, or have no bounds."""
    while not (isinstance(env.action_space, Box) and env.action_space.is_bounded()):
        env = getattr(env, "env", None)
        if env is None:
            return None
    space = env.action_space
    if space.dtype.kind != "f":
        return None
    margin = MARGIN * (space.high - space.low)
    return space.low + margin, space.high - margin
