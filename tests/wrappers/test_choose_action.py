"""The integers that a policy's outputs choose, by hand and compared with NumPy's argmax of each number."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from hypothesis import given
from hypothesis import strategies as st

from hebbes.wrappers.choose_action import ChooseAction
from tests.scripted import ScriptedEnv


def choose(space, rows):
    """The actions that reach the inner environment for these rows of outputs."""
    inner = ScriptedEnv(len(rows), action_space=space)
    env = ChooseAction(inner)
    env.start(0)
    assert env.action_space == Box(-np.inf, np.inf, (len(rows[0]),), np.float32)
    env.step(np.array(rows, np.float32), np.arange(len(rows)))
    ((actions, _),) = inner.calls
    assert all(space.contains(action) for action in (actions.tolist() if isinstance(space, Discrete) else actions))
    return actions


@pytest.mark.parametrize(
    ("space", "outputs", "action"),
    [
        (MultiDiscrete([2, 3]), [0.1, 0.2, 3, -1, 2], [1, 0]),
        (MultiDiscrete([2, 3], start=[5, -1]), [0.1, 0.2, 3, -1, 4], [6, 1]),
        (MultiDiscrete([[1, 2], [2, 1]]), [9, 0, 1, 1, 0, -9], [[0, 1], [0, 0]]),
        (MultiDiscrete([3]), [2, 2, 2], [0]),  # the first among equals
        (MultiBinary(3), [0.5, 0, -0.5], [1, 0, 0]),  # greater than 0, not 0
        (MultiBinary([2, 2]), [1, -1, -1, 1], [[1, 0], [0, 1]]),
        (Discrete(3, start=7), [0, 5, 1], 8),
        (Box(np.array([-1, 4]), np.array([1, 5]), dtype=np.int64), [0, 0, 1, 3, 2], [1, 4]),
        (Box(0, 1, (2,), np.bool_), [0, 1, 1, 0], [True, False]),
        (Box(2**62, 2**62 + 2, (1,), np.int64), [0, 0, 1], [2**62 + 2]),  # floats do not tell such numbers apart
        (Box(2**64 - 2, 2**64 - 1, (1,), np.uint64), [0, 1], [2**64 - 1]),
    ],
)
def test_each_number_is_the_value_of_its_greatest_output(space, outputs, action):
    found = choose(space, [outputs, outputs])
    np.testing.assert_array_equal(found, [action, action])
    assert found.dtype == space.dtype


def test_values_that_no_integer_counts_are_too_many():
    with pytest.raises(ValueError, match=r"at most 32768 values in total, but actions .* have 9223372036854775808;"):
        ChooseAction(ScriptedEnv(1, action_space=MultiDiscrete([2**62, 2**62])))


def test_bytes_take_all_of_their_values():
    outputs = np.eye(256)
    assert choose(Box(-128, 127, (1,), np.int8), outputs).ravel().tolist() == list(range(-128, 128))
    assert choose(Box(0, 255, (1,), np.uint8), outputs).ravel().tolist() == list(range(256))


@given(counts=st.lists(st.integers(1, 5), min_size=1, max_size=6), seed=st.integers(0, 2**32 - 1))
def test_numbers_are_chosen_independently(counts, seed):
    outputs = np.random.default_rng(seed).integers(-2, 3, (4, sum(counts)))  # with many ties
    parts = np.split(outputs, np.cumsum(counts)[:-1], axis=1)
    expected = np.stack([part.argmax(axis=1) for part in parts], axis=1)
    np.testing.assert_array_equal(choose(MultiDiscrete(counts), outputs), expected)


def test_outputs_that_are_infinite_choose_as_others_do():
    np.testing.assert_array_equal(choose(MultiDiscrete([2, 2]), [[-np.inf, -np.inf, 0, np.inf]]), [[0, 1]])
