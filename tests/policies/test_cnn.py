import numpy as np
import pytest
import torch
from torch.nn.functional import conv2d, max_pool2d

from hebbes.policies.cnn import CNN


def test_parameter_counts_of_the_reference_on_car_racing():
    layout = CNN((84, 84, 3), 3).layout
    assert layout.num_params == 92_690
    assert layout.slices["conv2"].stop == 1_362


def test_any_image_size_and_number_of_channels():
    # 40 -> 38 -> 19 -> 8 -> 4 rows and 22 -> 20 -> 10 -> 3 -> 1 columns, 8 channels: 32 features
    layout = CNN((40, 22, 12), 2, hidden_sizes=(5,)).layout
    assert layout.num_params == 6 * 12 * 9 + 8 * 6 * 25 + 32 * 5 + 5 * 2


@pytest.mark.parametrize("shape", [(84, 84, 3), (40, 22, 1), (16, 16, 4)])
def test_against_torch_in_float64(shape):
    policy = CNN(shape, 3, hidden_sizes=(7,))
    rng = np.random.default_rng(0)
    weights = np.stack([policy.initial_params(rng) for _ in range(2)])
    observations = rng.random((2, *shape), dtype=np.float32)
    found = policy.act(weights, observations, np.zeros(2, np.float32), None, {})
    views = {name: torch.from_numpy(policy.layout.view(weights, name)).double() for name in policy.layout.shapes}
    for member in range(2):
        conv1, conv2, dense1, dense2 = (view[member] for view in views.values())
        image = torch.from_numpy(np.moveaxis(observations[member], -1, 0).copy()).double()
        maps = max_pool2d(torch.tanh(conv2d(image, conv1)), 2)
        maps = max_pool2d(torch.tanh(conv2d(maps, conv2, stride=2)), 2)
        np.testing.assert_allclose(found[member], dense2 @ torch.tanh(dense1 @ maps.flatten()), atol=2e-6)


@pytest.mark.parametrize("shape", [(28,), (15, 84, 3), (84, 15, 3), (4, 84, 84), (1, 84, 84, 3)])
def test_refuses_observations_that_are_not_images_or_too_small(shape):
    with pytest.raises(ValueError, match="at least 16 x 16 pixels; --policy mlp takes any observations"):
        CNN(shape, 3)
