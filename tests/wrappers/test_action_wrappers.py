import numpy as np
from gymnasium.spaces import Box

from tests.scripted import ScriptedEnv
from wrappers.clip_action import ClipAction
from wrappers.rescale_action import RescaleAction

BOUNDS = Box(np.array([-2.0, 0.0]), np.array([1.0, 5.0]), dtype=np.float64)


def sent(wrapper, actions):
    inner = ScriptedEnv(3, action_space=BOUNDS)
    env = wrapper(inner)
    env.start(0)
    env.step(np.array(actions, np.float32), np.array([2, 0, 1]))
    (received, active), *_ = inner.calls
    np.testing.assert_array_equal(active, [2, 0, 1])
    assert received.dtype == np.float64
    return received


def test_clip_action_stops_at_each_bound():
    received = sent(ClipAction, [[-3, -1], [0.5, 2.5], [9, np.nan]])
    np.testing.assert_array_equal(received, [[-2, 0], [0.5, 2.5], [1, np.nan]])


def test_rescale_action_maps_the_unit_interval_onto_the_bounds():
    received = sent(RescaleAction, [[-1, 1], [0, 0.5], [-7, 7]])
    np.testing.assert_array_equal(received, [[-2, 5], [-0.5, 3.75], [-2, 5]])


def test_rescale_action_keeps_nan():
    assert np.isnan(sent(RescaleAction, [[np.nan, 0]] * 3)[:, 0]).all()


def test_action_spaces_say_what_is_taken():
    inner = ScriptedEnv(1, action_space=BOUNDS)
    assert RescaleAction(inner).action_space == Box(-1, 1, (2,), np.float64)
    assert ClipAction(inner).action_space == Box(-np.inf, np.inf, (2,), np.float64)
