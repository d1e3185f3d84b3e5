"""Tallies of an episode."""

from time import perf_counter

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


def tally(space, actions):
    """The tallies after one env step of two sub-environments."""
    env = Replaces(ScriptedEnv(2), space)
    env.start(0)
    tallies = Tallies(env)
    env.step(actions, np.arange(2))
    tallies.record(actions, perf_counter())
    return tallies


@pytest.mark.parametrize("space", [Box(-1, 1, (3,), np.float32), Box(-np.inf, np.inf, (3,), np.float32), Discrete(3)])
def test_actions_that_a_wrapper_replaces_are_compared_with_its_own_bounds_alone(space):
    tallies = tally(space, np.array([[0.985, 0.975, 0], [0.5, -1, 0]], np.float32) if space.shape else np.array([1, 0]))
    is_bounded = bool(space.shape) and space.is_bounded()
    assert (tallies.sums["saturated_actions"], tallies.sums["bounded_actions"]) == ((2, 6) if is_bounded else (0, 0))


def test_the_largest_bounds_saturate_no_action_within_them():
    largest = np.finfo(np.float32).max
    tallies = tally(Box(-largest, largest, (1,), np.float32), np.array([[1], [largest]], np.float32))
    assert tallies.sums["saturated_actions"] == 1
