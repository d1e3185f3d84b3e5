"""Low-rank weights give the same outputs as the equivalent dense rows."""

import numpy as np
import pytest

from hebbes.contracts.policy import Layout, LowRankWeights
from hebbes.policies.cnn import CNN
from hebbes.policies.conv_lstm import ConvLSTM
from hebbes.policies.gru import GRU
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.layers import conv, linear, make_rows
from hebbes.policies.linear import Linear
from hebbes.policies.mlp import MLP
from tests.shape_checks import unchecked

POLICIES = [
    Linear((5,), 3, bias=True),
    MLP((4,), 2, hidden_sizes=(37, 16), bias=True),
    MLP((17,), 6, hidden_sizes=(64, 64)),
    CNN((20, 27, 3), 3),
    GRU((5,), 3, hidden_sizes=(), recurrent_size=7),
    ConvLSTM((20, 27, 3), 2),
    Hebbian((6,), 2, hidden_sizes=(9,), init_weights="coevolve"),
    Hebbian((20, 27, 3), 2, hidden_sizes=(9,), sharing="modulo", num_rules=8),
]


def draw_low_rank_weights(layout, members, rank=1, scale=0.2):
    rng, factors = np.random.default_rng(1), layout.make_factor_layout(rank)
    center = rng.normal(0, scale, layout.num_params).astype(np.float32)
    noise = rng.normal(0, scale, (members, factors.num_params)).astype(np.float32)
    return LowRankWeights(center, noise, layout, factors)


def compute_outputs(policy, weights, members=None, steps=3):
    members = range(len(weights)) if members is None else members
    observations = np.stack([np.random.default_rng(m).random(policy.observation_shape) for m in members])
    state = policy.initial_state(weights, [np.random.default_rng(m) for m in members], {})
    for _ in range(steps):
        found = policy.act(weights, observations.astype(np.float32), np.zeros(len(weights), np.float32), state, {})
    return found


def test_linear_by_hand():
    layout = Layout({"matrix": (2, 3), "offset": (2,)})
    center = np.array([1, 4, 2, 5, 3, 6, 10, 20], np.float32)  # [[1, 2, 3], [4, 5, 6]], transposed
    noise = np.array([[1, -1, 1, 0, 2, 0.5, 0.25], [0, 0, 7, 7, 7, 0, 0]], np.float32)
    weights = LowRankWeights(center, noise, layout, layout.make_factor_layout(1))
    assert make_rows(weights, layout)[0].tolist() == [2, 2, 5, 3, 5, 4, 10.5, 20.25]
    inputs = np.array([[1, 2, -1], [1, 1, 1]], np.float32)
    assert linear(weights, layout, "matrix", inputs).tolist() == [[1, 9], [6, 15]]
    assert linear(weights, layout, "matrix", inputs, "offset").tolist() == [[11.5, 29.25], [16, 35]]


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_outputs_equal_those_of_dense_rows(policy, rank):
    weights = draw_low_rank_weights(policy.layout, members=11, rank=rank)
    dense = make_rows(weights, policy.layout)
    assert len({row.tobytes() for row in dense}) == 11
    atol = 1e-4 if isinstance(policy, ConvLSTM) else 1e-5  # its four convolutions amplify rounding errors
    np.testing.assert_allclose(compute_outputs(policy, weights), compute_outputs(policy, dense), rtol=1e-5, atol=atol)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_member_does_not_depend_on_the_batch(policy):
    weights = draw_low_rank_weights(policy.layout, members=19, rank=2)
    together = compute_outputs(policy, weights)
    for ids in ([0], [18], [7, 3], list(range(18, -1, -1)), list(range(1, 10)), list(range(2, 18))):
        assert np.array_equal(compute_outputs(policy, weights[np.array(ids)], ids), together[ids])
    mask = np.arange(19) % 3 == 1
    assert np.array_equal(compute_outputs(policy, weights[mask], np.flatnonzero(mask)), together[mask])


@pytest.mark.parametrize(("num_inputs", "num_outputs"), [(1, 1), (3, 15), (64, 16), (100, 33)])
def test_every_matrix_size_against_float64(num_inputs, num_outputs):
    layout = Layout({"skipped": (3,), "matrix": (num_outputs, num_inputs)})
    weights = draw_low_rank_weights(layout, members=9, rank=2, scale=1)
    inputs = np.random.default_rng(2).normal(size=(9, num_inputs)).astype(np.float32)
    matrices = layout.view(make_rows(weights, layout), "matrix").astype(np.float64)
    expected = np.einsum("moi,mi->mo", matrices, inputs)
    found = linear(weights, layout, "matrix", inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.sqrt(num_inputs))


def test_conv_finds_kernels_and_biases_anywhere_in_the_layout():
    layout = Layout({"offset": (5,), "matrix": (4, 3), "kernels": (5, 2, 3, 3)})
    weights, images = (
        draw_low_rank_weights(layout, members=3),
        np.random.default_rng(2).random((3, 2, 9, 8), np.float32),
    )
    rows = make_rows(weights, layout)
    for bias in ("offset", None):
        found = conv(weights, layout, "kernels", images, stride=2, padding=1, bias=bias)
        assert np.array_equal(found, conv(rows, layout, "kernels", images, stride=2, padding=1, bias=bias))


def test_infinity_stays_in_its_member():
    policy, observations = MLP((4,), 2, hidden_sizes=(16,)), np.ones((8, 4), np.float32)
    weights, rewards = draw_low_rank_weights(policy.layout, members=8), np.zeros(8, np.float32)
    expected = policy.act(weights, observations, rewards, None, {})
    observations[5, 2] = np.inf
    found = policy.act(weights, observations, rewards, None, {})
    assert np.isnan(found[5]).all()
    assert np.array_equal(np.delete(found, 5, axis=0), np.delete(expected, 5, axis=0))


@unchecked()
def test_refuses_wrong_arrays():
    layout = Layout({"matrix": (2, 3)})
    weights, inputs = draw_low_rank_weights(layout, members=2), np.zeros((2, 3), np.float32)
    wide = LowRankWeights(weights.center, weights.noise.astype(np.float64), layout, weights.factors)
    with pytest.raises(ValueError, match="noise must be contiguous float32, got float64"):
        linear(wide, layout, "matrix", inputs)
    with pytest.raises(ValueError, match=r"got center and noise of shapes \(\(6,\), \(2, 5\)\), expected"):
        linear(weights, layout, "matrix", np.zeros((3, 3), np.float32))
    with pytest.raises(ValueError, match="matrix: got inputs of size 4, its matrix takes 3"):
        linear(weights, layout, "matrix", np.zeros((2, 4), np.float32))
