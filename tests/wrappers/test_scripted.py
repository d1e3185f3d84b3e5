"""The scripted environments of the tests."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from tests.scripted import ENV_ID, ScriptedEnv, register


def make_ids(*envs):
    return np.array(envs)


def test_follows_its_script():
    env = ScriptedEnv(2, rewards=[[1, 2], [3, 4]], terminate_at=[0, 2], truncate_at=3, nan_at=[2, 0], action_weight=10)
    assert env.start(6).tolist() == [[0, 0, 6], [1, 0, 6]]
    step = env.step(np.array([[1, 1], [0, 0]]), make_ids(1, 0))
    assert step.rewards.tolist() == [23, 1]
    assert step.observations.tolist() == [[1, 1, 6], [0, 1, 6]]
    step = env.step(np.zeros((2, 2)), make_ids(1, 0))
    assert step.terminated.tolist() == [True, False]
    assert np.isnan(step.observations).tolist() == [[False] * 3, [True] * 3]
    step = env.step(np.zeros((1, 2)), make_ids(0))
    assert (step.rewards.tolist(), step.truncated.tolist()) == ([2], [True])
    assert [active.tolist() for _, active in env.calls] == [[1, 0], [1, 0], [0]]


def test_faults_come_on_cue():
    env = ScriptedEnv(3, fault_at=[0, 1, 0])
    env.start(0)
    step = env.step(np.zeros((2, 2)), make_ids(2, 1))
    assert dict(step.faults) == {1: "fault of sub-environment 1"}
    assert np.isnan(step.rewards).tolist() == step.terminated.tolist() == [False, True]


@pytest.mark.parametrize(
    ("rows", "active", "message"),
    [
        (1, [2], "out of range"),
        (1, [-1], "out of range"),
        (2, [1, 1], "named twice"),
        (1, [0, 1], "actions of shape"),
        (0, [], "ids of"),
        (1, [0], "finished sub-environments"),
    ],
)
def test_holds_its_caller_to_the_contract(rows, active, message):
    env = ScriptedEnv(2, terminate_at=[1, 0])
    with pytest.raises(AssertionError, match="finished sub-environments"):
        env.step(np.zeros((1, 2)), make_ids(0))
    env.start(0)
    if message == "finished sub-environments":
        env.step(np.zeros((1, 2)), make_ids(0))
    with pytest.raises(AssertionError, match=message):
        env.step(np.zeros((rows, 2)), np.array(active, np.int64))


def test_what_it_returns_cannot_be_changed():
    env = ScriptedEnv(1, lives=[3])
    observations = env.start(0)
    step = env.step(np.zeros((1, 2)), make_ids(0))
    for array in (observations, step.observations, step.rewards, step.terminated, step.truncated, step.info["lives"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_gymnasium_version_follows_its_script():
    register()
    env = gymnasium.make(ENV_ID, rewards=[1, 5], terminate_at=3, nan_at=2, action_weight=2.0, num_actions=3)
    assert env.action_space == Discrete(3)
    first, _ = env.reset(seed=9)
    again, _ = env.reset(seed=9)
    other, _ = env.reset(seed=10)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert env.step(1)[1:4] == (3, False, False)
    observation, reward, *_ = env.step(0)
    assert np.isnan(observation).all() and reward == 5
    assert env.step(0)[2]


def test_gymnasium_version_fails_on_cue():
    env = gymnasium.make("tests.scripted:Scripted-v0", raise_at=1)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="env step 1"):
        env.step(np.zeros(2, np.float32))
    env = gymnasium.make("tests.scripted:Scripted-v0", raise_at=1, only_above=0.5)
    env.reset(seed=0)
    env.step(np.full(2, 0.25, np.float32))
    for place in ("reset", "close"):
        env = gymnasium.make("tests.scripted:Scripted-v0", raise_in=place)
        with pytest.raises(RuntimeError, match=f"scripted failure in {place}"):
            getattr(env, place)()
    with pytest.raises(RuntimeError, match="scripted failure in constructor"):
        gymnasium.make("tests.scripted:Scripted-v0", raise_in="constructor")
