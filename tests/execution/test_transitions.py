"""Transitions as the episode loop gives them to those who collect them."""

from dataclasses import replace

import numpy as np
import pytest

from hebbes.contracts.engine import Transitions
from hebbes.execution.transitions import TransitionRecorder, find_finite
from hebbes.wrappers.base import BatchWrapper
from tests.execution.test_episode import run
from tests.scripted import ScriptedEnv


def collect(env, **options):
    recorder = TransitionRecorder(env.num_envs)
    result = run(env, collector=recorder, **options)
    return result, recorder.split_by_member()


def test_each_member_has_its_env_steps_in_order():
    env = ScriptedEnv(3, rewards=[1.0, 10.0, 100.0], terminate_at=[1, 3, 2], action_weight=1.0)
    result, members = collect(env, values=[0.25, 0.5, 1.0])
    assert [len(each) for each in members] == result.env_steps.tolist() == [1, 3, 2]
    assert [float(each.rewards.sum()) for each in members] == result.returns.tolist()
    for number, each in enumerate(members):
        steps = np.arange(len(each))
        # the observation is (sub-environment, env step, episode)
        assert each.observations.tolist() == [[number, step, 7] for step in steps]
        assert each.next_observations.tolist() == [[number, step + 1, 7] for step in steps]
        assert (each.actions == [0.25, 0.5, 1.0][number]).all()
        assert each.terminated.tolist() == [False] * (len(each) - 1) + [True]


def test_a_time_limit_is_not_terminal():
    _, (member,) = collect(ScriptedEnv(1, truncate_at=3))
    assert member.terminated.tolist() == [False] * 3
    _, (member,) = collect(ScriptedEnv(1), max_episode_steps=2)
    assert member.terminated.tolist() == [False] * 2
    _, (member,) = collect(ScriptedEnv(1, truncate_at=3, terminate_at=3))
    assert member.terminated.tolist() == [False, False, True]


@pytest.mark.parametrize("failure", ["nan_at", "fault_at"])
def test_env_steps_that_fail_are_left_out(failure):
    result, members = collect(ScriptedEnv(2, truncate_at=4, **{failure: [3, 0]}))
    assert np.isnan(result.returns).tolist() == [True, False]
    assert [len(each) for each in members] == [2, 4]


def test_a_member_without_a_finite_env_step_has_none():
    _, members = collect(ScriptedEnv(2, truncate_at=4, nan_at=[1, 0]))
    assert members[0] is None and len(members[1]) == 4
    assert TransitionRecorder(2).split_by_member() == (None, None)


def test_a_collector_may_change_the_actions():
    class Opposite(TransitionRecorder):
        def choose_actions(self, observations, actions):
            return -super().choose_actions(observations, actions)

    env = ScriptedEnv(1, rewards=[0.0], truncate_at=2, action_weight=1.0)
    recorder = Opposite(1)
    assert run(env, values=[0.25], collector=recorder).returns.tolist() == [-1.0]
    assert (recorder.split_by_member()[0].actions == -0.25).all()


class Reusing(BatchWrapper):
    """Returns the same arrays from every call."""

    def __init__(self, env):
        super().__init__(env)
        self._kept = None

    def _write(self, observations):
        if self._kept is None:
            self._kept = observations.copy()
        self._kept[:] = observations
        return self._kept

    def start(self, episode):
        return self._write(self.env.start(episode))

    def step(self, actions, active):
        env_step = self.env.step(actions, active)
        return replace(env_step, observations=self._write(env_step.observations))


def test_an_environment_may_reuse_its_arrays():
    _, (found,) = collect(Reusing(ScriptedEnv(1, truncate_at=5)))
    _, (expected,) = collect(ScriptedEnv(1, truncate_at=5))
    for name, array in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, name), array, name)


def test_numbers_that_float32_does_not_hold_are_left_out():
    transitions = Transitions(
        np.zeros((3, 1)),
        np.zeros((3, 1)),
        np.array([1e39, 0.0, 1.0]),
        np.zeros(3, bool),
        np.array([[0.0], [1e39], [1]]),
    )
    assert find_finite(transitions).tolist() == [False, False, True]
