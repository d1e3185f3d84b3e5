"""Both back ends refuse input on which a simulator in C++ would crash."""

import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
from tests.shape_checks import unchecked


def make_cart_poles(backend, seeds):
    return make_batch_env(EnvironmentSpec("CartPole-v1", backend), seeds, threads=1, training=False)


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
@pytest.mark.parametrize(
    ("actions", "active", "reason"),
    [
        ([0, 1], [0, 3], "sub-environments in 0..2"),
        ([0, 1], [-1, 0], "sub-environments in 0..2"),
        ([0, 1], [1, 1], "distinct"),
        ([0, 1, 0], [2, 0, 2], "distinct"),
        ([], [], "at least one"),
        ([0], [0, 1], r"shape \(2,\), got \(1,\)"),
        ([[0], [1]], [0, 1], r"shape \(2,\), got \(2, 1\)"),
        ([0, 2], [0, 1], r"Discrete\(2\)"),
        ([0, -1], [0, 1], r"Discrete\(2\)"),
    ],
)
@unchecked()
def test_a_step_that_would_crash_is_refused(backend, actions, active, reason):
    env = make_cart_poles(backend, [0, 1, 2])
    env.start(0)
    with pytest.raises(ValueError, match=reason):
        env.step(np.array(actions, np.int64), np.array(active, np.int64))
    env.step(np.zeros(3, np.int64), np.arange(3))


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
@unchecked()
def test_numbers_of_another_kind_are_refused(backend):
    env = make_cart_poles(backend, [0, 1])
    env.start(0)
    with pytest.raises(TypeError):
        env.step(np.zeros(2), np.arange(2))
    with pytest.raises(TypeError):
        env.step(np.zeros(2, np.int64), np.arange(2.0))


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_ended_and_unbegun_episodes_are_refused(backend):
    env = make_cart_poles(backend, [0, 0])
    with pytest.raises(ValueError, match="has ended or not begun"):
        env.step(np.ones(2, np.int64), np.arange(2))
    env.start(0)
    while not env.step(np.ones(1, np.int64), np.array([1])).terminated[0]:
        pass
    with pytest.raises(ValueError, match=r"has ended or not begun: \[1\]"):
        env.step(np.ones(2, np.int64), np.arange(2))
    with pytest.raises(ValueError, match="episode must be >= 0, got -1"):
        env.start(-1)
