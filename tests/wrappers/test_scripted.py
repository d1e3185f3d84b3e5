"""The scripted environments of the tests."""

import numpy as np
import pytest

from tests.scripted import ScriptedEnv


def make_ids(*envs):
    return np.array(envs)


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
