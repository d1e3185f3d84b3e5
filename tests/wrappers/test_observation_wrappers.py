import cv2
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from hebbes.wrappers.crop import Crop
from hebbes.wrappers.frame_stack import FrameStack
from hebbes.wrappers.grayscale import Grayscale
from hebbes.wrappers.one_hot import OneHot
from hebbes.wrappers.resize import Resize, compute_area_taps
from hebbes.wrappers.scale import Scale
from tests.scripted import ScriptedEnv


def make_images_env(*shape):
    return ScriptedEnv(2, observation_space=Box(0, 255, shape, np.uint8))


def resize(images, height, width):
    return Resize(make_images_env(*images.shape[1:]), size=(height, width)).transform(images)


def test_grayscale_has_the_luma_of_bt601():
    colors = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [10, 20, 30], [0, 0, 0]]
    images = np.array(colors, np.uint8).reshape(1, 2, 3, 3)
    # 0.299 R + 0.587 G + 0.114 B, rounded: 76.2, 149.7, 29.1, 255, 18.2, 0
    expected = np.array([76, 150, 29, 255, 18, 0]).reshape(1, 2, 3, 1)
    np.testing.assert_array_equal(Grayscale(make_images_env(2, 3, 3)).transform(images), expected)


def test_grayscale_keeps_images_apart():
    env = Grayscale(make_images_env(4, 5, 3))
    images = np.zeros((2, 4, 5, 3), np.uint8)
    images[1, 2, 3] = 200
    gray = env.transform(images)
    assert gray.shape == (2, 4, 5, 1)
    assert np.argwhere(gray).tolist() == [[1, 2, 3, 0]]


def test_crop_cuts_top_bottom_left_and_right():
    images = np.arange(2 * 5 * 6 * 3, dtype=np.uint8).reshape(2, 5, 6, 3)
    env = Crop(make_images_env(5, 6, 3), edges=(1, 2, 0, 4))
    assert env.observation_space == Box(0, 255, (2, 2, 3), np.uint8)
    left = env.transform(images)
    np.testing.assert_array_equal(left, images[:, 1:3, :2])
    assert left.flags.c_contiguous


def test_resize_averages_areas_by_hand():
    image = np.array([[0, 90, 240], [30, 60, 90], [200, 0, 100]], np.uint8).reshape(1, 3, 3, 1)
    # along a line of 3 -> 2: (2a + b) / 3 and (b + 2c) / 3; rows first: [[10, 80, 190], [143.3, 20, 96.7]]
    np.testing.assert_array_equal(resize(image, 2, 2)[0, :, :, 0], [[33, 153], [102, 71]])
    np.testing.assert_array_equal(resize(image, 1, 1).ravel(), [90])  # 810 / 9


def test_area_weights_by_hand():
    first, weights = compute_area_taps(3, 2)
    assert first.tolist() == [0, 1]
    assert weights.T.tolist() == [[2731, 1365], [1365, 2731]]  # 2/3 and 1/3 of 4096


@pytest.mark.parametrize(
    ("old", "new", "channels"),
    [
        ((96, 96), (84, 84), 3),
        ((210, 160), (84, 84), 3),
        ((160, 160), (80, 80), 1),
        ((17, 33), (17, 5), 4),
        ((61, 97), (60, 33), 2),
        ((5, 7), (5, 7), 3),
    ],
)
def test_resize_is_within_one_gray_level_of_opencv(old, new, channels):
    images = np.random.default_rng(0).integers(0, 256, (3, *old, channels), dtype=np.uint8)
    ours = resize(images, *new)
    size = (new[1], new[0])
    theirs = [cv2.resize(image, size, interpolation=cv2.INTER_AREA).reshape(*new, channels) for image in images]
    assert ours.shape == (3, *new, channels)
    difference = np.abs(ours.astype(int) - np.array(theirs))
    assert difference.max() <= 1
    assert difference.mean() < 0.05


@pytest.mark.parametrize("old", range(1, 41))
def test_resize_mixes_the_weighted_pixels_of_each_area(old):
    """However many neighbors a vector of the kernel holds, and wherever areas begin."""
    rng = np.random.default_rng(old)
    new_height, new_width = rng.integers(1, old + 1, 2)
    images = rng.integers(0, 256, (2, old, old, old % 4 + 1), dtype=np.uint8)
    matrices = []
    for new in (new_height, new_width):
        first, weights = compute_area_taps(old, new)
        matrix = np.zeros((new, old + len(weights)), np.int64)
        matrix[np.arange(new), first.astype(int) + np.arange(len(weights))[:, np.newaxis]] = weights
        assert (matrix[:, old:] == 0).all() and (matrix.sum(axis=1) == 4096).all()
        matrices.append(matrix[:, :old])
    mixed = np.einsum("yi,xj,nijc->nyxc", *matrices, images.astype(np.int64))
    np.testing.assert_array_equal(resize(images, new_height, new_width), (mixed + 2**23) >> 24)


@pytest.mark.parametrize("new", range(1, 14))
def test_resize_keeps_a_flat_image_flat(new):
    for level in (0, 1, 254, 255):
        assert (resize(np.full((1, 13, 13, 1), level, np.uint8), new, 14 - new) == level).all()


def test_resize_takes_images_of_any_memory_order():
    images = np.random.default_rng(1).integers(0, 256, (2, 3, 9, 8), dtype=np.uint8)
    channels_last = np.moveaxis(images, 1, -1)
    np.testing.assert_array_equal(resize(channels_last, 5, 4), resize(channels_last.copy(), 5, 4))


def test_scale_is_the_nearest_float32():
    scaled = Scale(make_images_env(16, 16, 1)).transform(np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1))
    assert scaled.dtype == np.float32
    np.testing.assert_array_equal(scaled.ravel(), (np.arange(256) / 255.0).astype(np.float32))


def test_scale_space():
    assert Scale(make_images_env(2, 2, 1)).observation_space == Box(0.0, 1.0, (2, 2, 1), np.float32)


def test_one_hot_counts_from_the_spaces_start():
    env = OneHot(ScriptedEnv(2, observation_space=Discrete(3, start=5)))
    assert env.transform(np.array([7, 5])).tolist() == [[0, 0, 1], [1, 0, 0]]
    # the script: 5 + (sub-environment + 3 env steps + 5 episodes) % 3
    assert env.start(0).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert env.step(np.zeros((1, 2)), np.array([1])).observations.tolist() == [[0, 1, 0]]


def test_image_wrappers_nest():
    inner = make_images_env(9, 8, 3)
    env = Scale(FrameStack(Grayscale(Resize(inner, size=(5, 4))), num_frames=2))
    assert env.observation_space == Box(0.0, 1.0, (5, 4, 2), np.float32)
    before = inner.start(3)
    first = env.start(3)
    gray = [cv2.cvtColor(resize(before[[index]], 5, 4)[0], cv2.COLOR_RGB2GRAY) / 255 for index in range(2)]
    np.testing.assert_allclose(first, np.repeat(np.array(gray)[..., np.newaxis], 2, axis=-1), atol=1e-7)
    second = env.step(np.zeros((1, 2)), np.array([1])).observations
    np.testing.assert_array_equal(second[0, ..., 0], first[1, ..., 1])
    assert not np.array_equal(second[0, ..., 1], first[1, ..., 1])
