"""Initial parameters of static networks, against the layers of PyTorch."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from hebbes.policies.cnn import CNN
from hebbes.policies.linear import Linear
from hebbes.policies.mlp import MLP
from hebbes.policies.small import Small

DRAWS = 60


def draw_arrays(policy):
    """Every array of a policy by name, each with DRAWS initial values."""
    rows = np.stack([policy.initial_params(np.random.default_rng(seed)) for seed in range(DRAWS)])
    return {name: policy.layout.view(rows, name) for name in policy.layout.shapes}


def draw_with_torch(make_layer, array):
    """The weights or the biases of DRAWS layers of PyTorch."""
    torch.manual_seed(1)
    return np.stack([getattr(make_layer(), array).detach().numpy() for _ in range(DRAWS)])


def make_dense_layers(bias, *sizes):
    """Functions that make the fully connected layers between these sizes, by name."""
    return {f"dense{k}": lambda a=a, b=b: nn.Linear(a, b, bias=bias) for k, (a, b) in enumerate(pairwise(sizes), 1)}


NETWORKS = [
    pytest.param(
        MLP((40,), 3, (30, 20), bias=True, initialization="pytorch"), make_dense_layers(True, 40, 30, 20, 3), id="mlp"
    ),
    pytest.param(
        MLP((40,), 3, (30,), initialization="pytorch"), make_dense_layers(False, 40, 30, 3), id="mlp without biases"
    ),
    pytest.param(Small((4, 2), 2, initialization="pytorch"), make_dense_layers(True, 8, 64, 64, 2), id="small"),
    pytest.param(
        CNN((84, 84, 3), 3, (10,), initialization="pytorch"),
        {
            "conv1": lambda: nn.Conv2d(3, 6, 3, bias=False),
            "conv2": lambda: nn.Conv2d(6, 8, 5, bias=False),
            **make_dense_layers(False, 648, 10, 3),
        },
        id="cnn",
    ),
]


@pytest.mark.parametrize(("policy", "layers"), NETWORKS)
def test_pytorch_initialization_equals_that_of_torch_layers(policy, layers):
    found = draw_arrays(policy)
    assert found.keys() == {*layers, *(name for name in found if name.removesuffix("_bias") in layers)}
    for name, array in found.items():
        layer = layers[name.removesuffix("_bias")]
        theirs = draw_with_torch(layer, "bias" if name.endswith("_bias") else "weight")
        assert array.shape == theirs.shape
        assert np.abs(array).max() == pytest.approx(np.abs(theirs).max(), rel=0.05)
        assert array.std() == pytest.approx(theirs.std(), rel=0.1)
        assert abs(array.mean()) < 0.2 * theirs.std()


def test_pytorch_bounds_are_one_over_the_root_of_fan_in():
    found = draw_arrays(CNN((84, 84, 3), 3, initialization="pytorch"))
    for name, fan_in in {"conv1": 27, "conv2": 150, "dense1": 648, "dense2": 128, "dense3": 64}.items():
        assert 0.99 / np.sqrt(fan_in) < np.abs(found[name]).max() <= np.float32(1 / np.sqrt(fan_in))


def test_xavier_is_the_default_and_linear_starts_at_zero():
    for policy in (MLP, CNN, Small):
        plain, named = (policy((20, 20, 3), 2, **options) for options in ({}, {"initialization": "xavier"}))
        assert plain == named
        first = draw_arrays(plain)["conv1" if policy is CNN else "dense1"]
        fans = (27 + 54) if policy is CNN else 1200 + first.shape[1]
        assert 0.99 * np.sqrt(6 / fans) < np.abs(first).max() <= np.float32(np.sqrt(6 / fans))
    assert not Linear((3,), 2).initial_params(np.random.default_rng(0)).any()
