"""Networks with written-out gradients equal PyTorch's modules and autograd."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from hebbes.hybrids.core import networks
from hebbes.hybrids.core.networks import LEAK, Network, Parameters
from hebbes.policies.mlp import MLP

MODULES = {"linear": nn.Identity, "relu": nn.ReLU, "leaky_relu": lambda: nn.LeakyReLU(LEAK), "tanh": nn.Tanh}
SIZES = (5, 7, 4, 3)


def make_rows(network, count, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(count, network.num_params)).astype(np.float32))


def make_module(network, row):
    stages = []
    for number, (num_inputs, num_outputs) in enumerate(pairwise(network.sizes), start=1):
        last = number == len(network.sizes) - 1
        stages += [nn.Linear(num_inputs, num_outputs), MODULES[network.output if last else network.hidden]()]
    module = nn.Sequential(*stages)
    nn.utils.vector_to_parameters(row, module.parameters())
    return module


@pytest.mark.parametrize("hidden", ["relu", "leaky_relu", "tanh"])
@pytest.mark.parametrize("output", ["linear", "tanh"])
@pytest.mark.parametrize(("count", "first"), [(1, 0), (3, 2)])
def test_both_passes_equal_autograd(hidden, output, count, first):
    network = Network(SIZES, hidden, output)
    rows, inputs = (
        make_rows(network, count),
        torch.randn(count, 6, SIZES[0], generator=torch.Generator().manual_seed(1)),
    )
    slopes = torch.randn(count, 6, SIZES[-1], generator=torch.Generator().manual_seed(2))
    found = network.make_parameters(torch.zeros_like(rows))
    parameters = network.make_parameters(rows)
    outputs = network.forward(parameters, inputs)
    kept = outputs[-1].clone()
    input_gradient = network.backward(
        parameters, inputs, outputs, slopes.clone(), parameter_gradient=found, first_input=first
    )
    for row, x, slope, y, gradient, x_gradient in zip(
        rows, inputs, slopes, kept, found.rows, input_gradient, strict=True
    ):
        module, leaf = make_module(network, row.clone()), x.clone().requires_grad_()
        expected = module(leaf)
        expected.backward(slope)
        torch.testing.assert_close(y, expected.detach())
        torch.testing.assert_close(x_gradient, leaf.grad[:, first:])
        torch.testing.assert_close(gradient, torch.cat([each.grad.ravel() for each in module.parameters()]))


def test_products_are_computed_from_matrices_without_gaps(monkeypatch):
    """With gaps oneDNN takes its reference implementation, in silence."""
    given, multiply = [], networks._multiply_by_onednn

    def record(left, right, *others):
        given.extend([left, right])
        return multiply(left, right, *others)

    monkeypatch.setattr(networks, "_multiply_by_onednn", record)
    network = Network(SIZES, "relu", "linear")
    rows, inputs = make_rows(network, 2), torch.ones(2, 6, 11)[:, :, : SIZES[0]]
    parameters, gradient = network.make_parameters(rows), network.make_parameters(torch.zeros_like(rows))
    outputs = network.forward(parameters, inputs)
    network.backward(
        parameters, inputs, outputs, torch.ones(2, 6, SIZES[-1]), parameter_gradient=gradient, first_input=2
    )
    assert len(given) == 2 * 2 * 3 * len(parameters.layers)
    assert all(each.is_contiguous() or each.t().is_contiguous() for each in given)


def test_parameters_are_views_of_the_rows():
    network = Network((2, 3, 1), "tanh", "linear")
    parameters = Parameters(torch.zeros(2, network.num_params), network.sizes)
    assert [tuple(each.shape) for layer in parameters.layers for each in layer] == [
        (2, 3, 2),
        (2, 1, 3),
        (2, 1, 3),
        (2, 1, 1),
    ]
    for number, layer in enumerate(parameters.layers):
        layer[0].fill_(number + 1)
        layer[1].fill_(-number - 1)
    assert parameters.rows.tolist() == [[1] * 6 + [-1] * 3 + [2] * 3 + [-2]] * 2


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_a_row_is_that_of_a_policy(activation):
    policy = MLP((5,), 3, hidden_sizes=(7, 4), bias=True, activation=activation)
    network = Network(SIZES, activation, "linear")
    assert network.num_params == policy.layout.num_params
    rows, observations = make_rows(network, 2), np.random.default_rng(3).normal(size=(2, 5)).astype(np.float32)
    acted = policy.act(rows.numpy(), observations, np.zeros(2, np.float32), None, {})
    outputs = network.forward(network.make_parameters(rows), torch.from_numpy(observations).unsqueeze(1))
    np.testing.assert_allclose(acted, outputs[-1].squeeze(1), rtol=1e-5, atol=1e-6)
