import numpy as np
import pytest

from hebbes.policies.mlp import MLP


def test_parameter_count_of_the_reference_on_ant():
    assert MLP((28,), 8).layout.num_params == 12_288


def test_biases_add_one_parameter_per_unit():
    assert MLP((28,), 8, bias=True).layout.num_params == 12_288 + 128 + 64 + 8


def test_by_hand():
    policy = MLP((2,), 1, hidden_sizes=(1, 1))
    weights = np.array([[0.5, -0.25, 3, 2]], np.float32)
    outputs = policy.act(weights, np.array([[1.0, 4.0]]), np.zeros(1, np.float32), None, {})
    assert outputs.item() == pytest.approx(2 * np.tanh(3 * np.tanh(-0.5)), abs=1e-6)


def test_initial_params_are_xavier_uniform_with_zero_biases():
    policy = MLP((300,), 2, hidden_sizes=(100,), bias=True)
    params = policy.initial_params(np.random.default_rng(0))
    matrix = policy.layout.view(params[None], "dense1")
    bound = np.sqrt(6 / 400)
    assert 0.99 * bound < matrix.max() <= bound
    assert matrix.var() == pytest.approx(bound**2 / 3, rel=0.02)
    assert np.count_nonzero(params) == 300 * 100 + 100 * 2


def test_the_activation_by_hand():
    policy = MLP((1,), 1, hidden_sizes=(2,), activation="relu")
    outputs = policy.act(np.array([[2, -2, 3, 5]], np.float32), np.ones((1, 1)), np.zeros(1, np.float32), None, {})
    assert outputs.item() == 6  # 3 relu(2) + 5 relu(-2)
