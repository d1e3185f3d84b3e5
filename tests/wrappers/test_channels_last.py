"""Images in PyTorch's order: which ones are recognized, and where their pixels go."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from hebbes.wrappers.channels_last import ChannelsLast, has_channels_first
from tests.scripted import ScriptedEnv, observe


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (Box(0, 255, (3, 84, 84), np.uint8), True),
        (Box(0, 255, (1, 24, 20), np.uint8), True),
        (Box(0, 255, (4, 84, 84), np.uint8), True),
        (Box(0, 255, (84, 84, 3), np.uint8), False),
        (Box(0, 255, (3, 84, 3), np.uint8), False),  # both axes could be the channels; the last one is taken
        (Box(0, 255, (2, 84, 84), np.uint8), False),
        (Box(0, 255, (12, 84, 84), np.uint8), False),
        (Box(0, 1, (3, 84, 84), np.float32), False),
        (Box(0, 255, (84, 84), np.uint8), False),
        (Discrete(3), False),
    ],
)
def test_which_images_have_their_channels_first(space, expected):
    assert has_channels_first(space) == expected


def test_each_pixel_keeps_its_place_in_the_image():
    space = Box(0, 255, (3, 8, 6), np.uint8)
    (image,) = ChannelsLast(ScriptedEnv(1, observation_space=space)).start(0)
    expected = observe(space, 0, 0, 0)
    assert image.shape == (8, 6, 3)
    assert all(image[y, x, c] == expected[c, y, x] for y in range(8) for x in range(6) for c in range(3))
