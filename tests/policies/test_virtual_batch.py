"""Virtual batch normalization against PyTorch's batch normalization."""

import numpy as np
import pytest
import torch
from torch.nn.functional import batch_norm, conv2d, max_pool2d, selu

from hebbes.policies.cnn import CNN, compute_conv_features
from hebbes.policies.conv_lstm import ConvLSTM

SHAPE = (30, 26, 2)
FRAMES = 6


def _compute_features_with_torch(policy, row, frames, image):
    """Features of an image normalized by the statistics of the frames, biases after normalization."""
    views = {name: torch.from_numpy(policy.layout.view(row[None], name)[0]).double() for name in policy.layout.shapes}
    maps = torch.from_numpy(np.moveaxis(np.concatenate([frames, image[None]]), -1, 1)).double()
    for name, kernel in views.items():
        if kernel.ndim != 4:
            continue
        if isinstance(policy, CNN):
            maps = max_pool2d(conv2d(maps, kernel, stride=1 if name == "conv1" else 2), 2)
        else:
            maps = conv2d(maps, kernel, stride=2, padding=1)
        mean, variance = torch.zeros(maps.shape[1]).double(), torch.ones(maps.shape[1]).double()
        reference = maps[:FRAMES]
        count = reference.numel() / maps.shape[1]
        batch_norm(reference, mean, variance, training=True, momentum=1.0)
        variance = variance * (count - 1) / count  # torch returns the unbiased variance
        maps = batch_norm(maps, mean, variance, bias=views.get(f"{name}_bias"), eps=1e-3)
        maps = torch.tanh(maps) if isinstance(policy, CNN) else selu(maps)
    return maps[-1].flatten().numpy()


@pytest.mark.parametrize("kind", [CNN, ConvLSTM])
def test_features_equal_torchs_batch_norm_with_frozen_statistics(kind):
    policy, rng = kind(SHAPE, 3, virtual_batch=FRAMES), np.random.default_rng(0)
    weights = rng.normal(0, 0.3, (2, policy.layout.num_params)).astype(np.float32)
    frames, images = rng.random((FRAMES, *SHAPE), dtype=np.float32), rng.random((2, *SHAPE), dtype=np.float32)
    state = policy.initial_state(weights, [rng, rng], {"virtual_batch": frames})
    found = _compute_features(policy, weights, images, state)
    for member in range(2):
        expected = _compute_features_with_torch(policy, weights[member], frames, images[member])
        np.testing.assert_allclose(found[member], expected, atol=2e-5)


def _compute_features(policy, weights, images, state):
    if isinstance(policy, ConvLSTM):
        return policy.compute_features(weights, images, state)
    return compute_conv_features(weights, policy.layout, images, state["statistics"])


@pytest.mark.parametrize("kind", [CNN, ConvLSTM])
def test_normalization_cancels_the_scale_of_a_kernel(kind):
    rng = np.random.default_rng(0)
    frames, image = rng.random((FRAMES, *SHAPE), dtype=np.float32), rng.random((1, *SHAPE), dtype=np.float32)
    ratios = []
    for virtual_batch in (FRAMES, 0):
        policy = kind(SHAPE, 3, virtual_batch=virtual_batch)
        row = policy.initial_params(np.random.default_rng(1))[np.newaxis] * 3
        larger = row.copy()
        larger[:, policy.layout.slices["conv1"]] *= 4
        outputs = []
        for weights in (row, larger):
            state = policy.initial_state(weights, [rng], {"virtual_batch": frames})
            outputs.append(policy.act(weights, image, np.zeros(1, np.float32), state, {}))
        ratios.append(np.abs(outputs[1] - outputs[0]).max() / np.abs(outputs[0]).max())
    assert ratios[0] < 0.05 < ratios[1]


def test_normalizes_the_reference_batch_with_observation_statistics():
    policy, rng = CNN(SHAPE, 3, virtual_batch=FRAMES), np.random.default_rng(0)
    weights = policy.initial_params(rng)[np.newaxis]
    frames = rng.random((FRAMES, *SHAPE), dtype=np.float32)
    statistics = {"observation_mean": np.full(SHAPE, 0.5, np.float32), "observation_std": np.full(SHAPE, 2, np.float32)}
    found = policy.initial_state(weights, [rng], {"virtual_batch": frames, **statistics})
    expected = policy.initial_state(weights, [rng], {"virtual_batch": (frames - 0.5) / 2})
    np.testing.assert_allclose(found["statistics"][0]["mean"], expected["statistics"][0]["mean"], atol=1e-6)


@pytest.mark.parametrize("buffers", [{}, {"virtual_batch": np.zeros((FRAMES + 1, *SHAPE), np.float32)}])
@pytest.mark.parametrize("kind", [CNN, ConvLSTM])
def test_refuses_a_missing_or_wrong_reference_batch(kind, buffers):
    policy, rng = kind(SHAPE, 3, virtual_batch=FRAMES), np.random.default_rng(0)
    weights = policy.initial_params(rng)[np.newaxis]
    with pytest.raises(ValueError, match=r"virtual_batch: the buffers must hold frames of shape \(6, 30, 26, 2\)"):
        policy.initial_state(weights, [rng], buffers)
