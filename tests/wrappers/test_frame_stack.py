import numpy as np
import pytest
from gymnasium.spaces import Box
from hypothesis import given, settings
from hypothesis import strategies as st

from hebbes.wrappers.frame_stack import FrameStack
from tests.scripted import ScriptedEnv, observe

VECTORS = Box(-np.inf, np.inf, (3,), np.float32)
COLOR = Box(0, 255, (4, 5, 3), np.uint8)
GRAY = Box(0, 255, (4, 5, 1), np.uint8)


def test_oldest_first_and_the_first_one_repeated():
    env = FrameStack(ScriptedEnv(2), num_frames=3)
    # (sub-environment, env step, episode) of three frames
    assert env.start(7).tolist() == [[0, 0, 7] * 3, [1, 0, 7] * 3]
    step = env.step(np.zeros((1, 2)), np.array([1]))
    assert step.observations.tolist() == [[1, 0, 7, 1, 0, 7, 1, 1, 7]]
    step = env.step(np.zeros((2, 2)), np.array([1, 0]))
    assert step.observations.tolist() == [[1, 0, 7, 1, 1, 7, 1, 2, 7], [0, 0, 7, 0, 0, 7, 0, 1, 7]]


def test_bounds_are_stacked_like_the_frames():
    inner = ScriptedEnv(1, observation_space=Box(np.array([-1, 0, 2.0]), np.array([1, 5, 3.0]), dtype=np.float64))
    space = FrameStack(inner, num_frames=2).observation_space
    assert space == Box(np.array([-1, 0, 2, -1, 0, 2.0]), np.array([1, 5, 3, 1, 5, 3.0]), dtype=np.float64)


@pytest.mark.parametrize("space", [VECTORS, COLOR, GRAY])
@settings(max_examples=25)
@given(data=st.data(), num_frames=st.integers(1, 4))
def test_equals_lists_of_frames(space, data, num_frames):
    env = FrameStack(ScriptedEnv(3, observation_space=space), num_frames=num_frames)
    for episode in range(2):
        seen = [[observe(space, index, 0, episode)] * num_frames for index in range(3)]
        env_steps = [0, 0, 0]
        np.testing.assert_array_equal(env.start(episode), [np.concatenate(frames, axis=-1) for frames in seen])
        for _ in range(data.draw(st.integers(1, 6))):
            active = data.draw(st.lists(st.integers(0, 2), min_size=1, unique=True))
            observations = env.step(np.zeros((len(active), 2)), np.array(active)).observations
            for row, index in enumerate(active):
                env_steps[index] += 1
                seen[index] = [*seen[index][1:], observe(space, index, env_steps[index], episode)]
                np.testing.assert_array_equal(observations[row], np.concatenate(seen[index], axis=-1))
