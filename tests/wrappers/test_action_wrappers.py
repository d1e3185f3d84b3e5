import numpy as np
import pytest
from gymnasium.spaces import Box

from hebbes.wrappers.clip_action import ClipAction
from hebbes.wrappers.flatten_action import FlattenAction
from hebbes.wrappers.rescale_action import RescaleAction
from tests.scripted import ScriptedEnv


def make_bounds(dtype):
    return Box(np.array([-2, 0], dtype), np.array([1, 5], dtype), dtype=dtype)


def record_sent_actions(wrapper, actions, takes=np.float64, given=np.float32):
    inner = ScriptedEnv(3, action_space=make_bounds(takes))
    env = wrapper(inner)
    env.start(0)
    env.step(np.array(actions, given), np.array([2, 0, 1]))
    (received, active), *_ = inner.calls
    np.testing.assert_array_equal(active, [2, 0, 1])
    assert received.dtype == takes
    return received


def test_clip_action_stops_at_each_bound():
    received = record_sent_actions(ClipAction, [[-3, -1], [0.5, 2.5], [9, np.nan]])
    np.testing.assert_array_equal(received, [[-2, 0], [0.5, 2.5], [1, np.nan]])


def test_rescale_action_maps_the_unit_interval_onto_the_bounds():
    received = record_sent_actions(RescaleAction, [[-1, 1], [0, 0.5], [-7, 7]])
    np.testing.assert_array_equal(received, [[-2, 5], [-0.5, 3.75], [-2, 5]])


def test_rescale_action_keeps_nan():
    assert np.isnan(record_sent_actions(RescaleAction, [[np.nan, 0]] * 3)[:, 0]).all()


@pytest.mark.parametrize("wrapper", [ClipAction, RescaleAction])
def test_actions_arrive_in_the_dtype_of_the_space(wrapper):
    record_sent_actions(wrapper, np.zeros((3, 2)), takes=np.float32, given=np.float64)
    record_sent_actions(wrapper, np.zeros((3, 2)), takes=np.float64, given=np.float32)


def test_action_spaces_say_what_is_taken():
    inner = ScriptedEnv(1, action_space=make_bounds(np.float64))
    assert RescaleAction(inner).action_space == Box(-1, 1, (2,), np.float64)
    assert ClipAction(inner).action_space == Box(-np.inf, np.inf, (2,), np.float64)


def test_flatten_action_fills_several_axes_in_order_and_one_row_of_bounds_with_them():
    low, high = np.array([[-1.0, -2.0], [-3.0, -4.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    inner = ScriptedEnv(1, action_space=Box(low, high, dtype=np.float64))
    env = RescaleAction(FlattenAction(inner))
    env.start(0)
    env.step(np.array([[1.0, -1.0, 0.0, 0.5]]), np.array([0]))
    assert inner.calls[0][0].tolist() == [[[1.0, -2.0], [0.0, 2.0]]]
