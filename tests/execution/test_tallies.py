"""Tallies of an episode."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from hebbes.execution.tallies import Tallies
from hebbes.wrappers.base import BatchWrapper
from tests.scripted import ScriptedEnv


class Replaces(BatchWrapper):
    """Takes three numbers, or the index of one, for the environment's two."""

    def __init__(self, env, space):
        super().__init__(env)
        self.action_space = space

    def step(self, actions, active):
        return self.env.step(np.full((len(active), 2), 1.0, np.float32), active)


@pytest.mark.parametrize("space", [Box(-1, 1, (3,), np.float32), Box(-np.inf, np.inf, (3,), np.float32), Discrete(3)])
def test_actions_that_a_wrapper_replaces_are_compared_with_its_own_bounds_alone(space):
    env = Replaces(ScriptedEnv(2), space)
    env.start(0)
    tallies = Tallies(env)
    tallies.step(np.array([[1, 0, 0], [0.5, -1, 0]], np.float32) if space.shape else np.array([1, 0]), np.arange(2))
    is_bounded = bool(space.shape) and space.is_bounded()
    assert (tallies.sums["saturated_actions"], tallies.sums["bounded_actions"]) == ((2, 6) if is_bounded else (0, 0))


def test_the_largest_bounds_saturate_no_action_within_them():
    largest = np.finfo(np.float32).max
    env = Replaces(ScriptedEnv(2), Box(-largest, largest, (1,), np.float32))
    env.start(0)
    tallies = Tallies(env)
    tallies.step(np.array([[1], [largest]], np.float32), np.arange(2))
    assert tallies.sums["saturated_actions"] == 1
