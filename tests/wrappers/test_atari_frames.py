"""Observations of Atari policies on both back ends: 42 x 42 normalized as in pytorch-es, and 84 x 84 stacked."""

import cv2
import numpy as np
import pytest
from gymnasium.spaces import Box

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.part_spec import PartSpec
from hebbes.wrappers.atari_42 import Atari42
from hebbes.wrappers.running_normalization import RunningNormalization
from tests.scripted import ScriptedEnv

SCREENS = Box(0, 255, (210, 160, 3), np.uint8)
NORMALIZED = (PartSpec("atari_42"), PartSpec("running_normalization"))
STACKED = (
    PartSpec("grayscale"),
    PartSpec("resize", {"size": [84, 84]}),
    PartSpec("frame_stack", {"num_frames": 4}),
    PartSpec("scale"),
)


def shrink(screens):
    return Atari42(ScriptedEnv(1, observation_space=SCREENS)).transform(screens)


def preprocess_as_pytorch_es(screen):
    """The preprocessing of pytorch-es, written from its description."""
    small = cv2.resize(cv2.resize(screen[34:194, :160], (80, 80)), (42, 42))
    return small.mean(axis=2, keepdims=True) / 255


def draw_screens(count):
    return np.random.default_rng(0).integers(0, 256, (count, 210, 160, 3), dtype=np.uint8)


def test_atari_42_is_within_one_gray_level_of_opencv():
    screens = draw_screens(4)
    expected = np.stack([preprocess_as_pytorch_es(screen) for screen in screens])
    assert np.abs(shrink(screens) - expected).max() <= 1 / 255


def test_atari_42_crops_the_score():
    screens = draw_screens(1)
    other = screens.copy()
    other[:, :34] = other[:, 194:] = 7
    assert np.array_equal(shrink(other), shrink(screens))
    other[:, 34] = 7
    assert not np.array_equal(shrink(other), shrink(screens))


def test_atari_42_takes_images_of_any_memory_order():
    screens = draw_screens(2)
    channels_first = np.moveaxis(np.ascontiguousarray(np.moveaxis(screens, -1, 1)), 1, -1)
    assert np.array_equal(shrink(channels_first), shrink(screens))


def test_running_averages_by_hand():
    # the scripted observation is (sub-environment, env step, episode): (3, 0, 6) has mean 3 and deviation sqrt(6)
    env = RunningNormalization(ScriptedEnv(4), decay=0.5)
    first = env.start(6)
    np.testing.assert_allclose(first[3], (np.array([3, 0, 6]) - 3) / np.sqrt(6), atol=1e-6)
    # (3, 1, 6): mean 10/3, variance 38/9; the averages weigh the newer one twice
    mean, deviation = (3 + 2 * 10 / 3) / 3, (np.sqrt(6) + 2 * np.sqrt(38 / 9)) / 3
    second = env.step(np.zeros((2, 2)), np.array([1, 3])).observations
    np.testing.assert_allclose(second[1], (np.array([3, 1, 6]) - mean) / deviation, atol=1e-6)


def test_the_averages_decay_as_slowly_as_those_of_pytorch_es():
    default, slow = RunningNormalization(ScriptedEnv(1)), RunningNormalization(ScriptedEnv(1), decay=0.9999)
    assert default.start(6).tolist() == slow.start(6).tolist()
    stepped = [env.step(np.zeros((1, 2)), np.array([0])).observations.tolist() for env in (default, slow)]
    assert stepped[0] == stepped[1]


def test_one_number_everywhere_becomes_zero():
    env = RunningNormalization(ScriptedEnv(1))
    assert env.start(0).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(("wrappers", "shape"), [(NORMALIZED, (42, 42, 1)), (STACKED, (84, 84, 4))], ids=["42", "84"])
def test_both_back_ends_show_the_same(wrappers, shape):
    pool, single = (
        make_batch_env(EnvironmentSpec("Breakout-v5", backend, wrappers=wrappers), [5], threads=1, training=True)
        for backend in ("envpool", "gymnasium")
    )
    assert pool.observation_space.shape == shape
    np.testing.assert_array_equal(pool.start(0), single.start(0))
    for action in (1, 0, 2, 3, 3, 0):
        stepped = [env.step(np.array([action]), np.array([0])).observations for env in (pool, single)]
        np.testing.assert_array_equal(*stepped)
    assert stepped[0].std() > 0.05
    pool.close()
    single.close()
