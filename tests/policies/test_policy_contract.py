"""The policy contract (hebbes/contracts/policy.py), tested for every policy of the registry."""

import json
import pickle
import pkgutil
from dataclasses import asdict
from functools import partial
from importlib import import_module

import numpy as np
import pytest
import torch
from numba.extending import is_jitted

import hebbes.policies
from hebbes.contracts.policy import LowRankWeights, count_reference_frames, estimate_state_bytes
from hebbes.execution.episode import _select_members
from hebbes.policies.base import StaticPolicy
from hebbes.policies.cnn import CNN
from hebbes.policies.conv_lstm import ConvLSTM
from hebbes.policies.gru import GRU
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.lstm import LSTM
from hebbes.policies.mlp import MLP
from hebbes.policies.recurrent import RecurrentPolicy
from hebbes.policies.torch_modules import as_module
from hebbes.registry.lookup import find_class, list_names
from tests.python_process import run_python

IMAGE = (20, 27, 3)
OUTPUTS = 3
MEMBERS = 5


MODULES = [entry.name for entry in pkgutil.walk_packages(hebbes.policies.__path__, "hebbes.policies.")]


def _find_policy_classes():
    for name in list_names("policy"):
        yield pytest.param(find_class("policy", name), id=name)


def _select_kind(kind, parameters):
    return [parameter for parameter in parameters if issubclass(_find_class(parameter.values[0]), kind)]


def _find_class(made_by):
    return made_by.func if isinstance(made_by, partial) else made_by


CLASSES = list(_find_policy_classes())
WITH_OPTIONS = [
    pytest.param(partial(MLP, activation="selu"), id="mlp-selu"),
    pytest.param(partial(MLP, activation="relu", bias=True), id="mlp-relu"),
    pytest.param(partial(LSTM, hidden_sizes=()), id="lstm-direct"),
    pytest.param(partial(GRU, hidden_sizes=()), id="gru-direct"),
    pytest.param(partial(LSTM, hidden_sizes=(9, 7), recurrent_size=5, activation="selu"), id="lstm-hidden"),
    pytest.param(partial(GRU, hidden_sizes=(9,), recurrent_size=5), id="gru-hidden"),
    pytest.param(partial(Hebbian, modulation="reward", eligibility=True, update_every=2), id="hebbian-reward"),
    pytest.param(partial(Hebbian, activity_window=2, normalization="tanh"), id="hebbian-window"),
    pytest.param(partial(Hebbian, sharing="neuron"), id="hebbian-neuron"),
    pytest.param(partial(Hebbian, hebb_rule="neural_25", sharing="layer"), id="hebbian-neural"),
]
NORMALIZED = [
    pytest.param(partial(CNN, virtual_batch=3), id="cnn-virtual_batch"),
    pytest.param(partial(ConvLSTM, virtual_batch=3), id="conv_lstm-virtual_batch"),
]
STATIC = _select_kind(StaticPolicy, CLASSES + WITH_OPTIONS)
RECURRENT = _select_kind(RecurrentPolicy, CLASSES + WITH_OPTIONS)
PLASTIC = _select_kind(Hebbian, CLASSES + WITH_OPTIONS)


@pytest.fixture(params=CLASSES + WITH_OPTIONS + NORMALIZED)
def policy(request):
    return request.param(IMAGE, OUTPUTS)


@pytest.fixture
def weights(policy):
    return np.random.default_rng(1).normal(0, 0.2, (MEMBERS, policy.layout.num_params)).astype(np.float32)


@pytest.fixture
def observations():
    return np.random.default_rng(2).random((MEMBERS, *IMAGE), dtype=np.float32)


def _draw_statistics(shape):
    rng = np.random.default_rng(3)
    return {
        "observation_mean": rng.random(shape, dtype=np.float32),
        "observation_std": rng.uniform(0.01, 1, shape).astype(np.float32),  # small enough for some clipping
    }


def _start(policy, weights, buffers, members=None):
    members = range(len(weights)) if members is None else members
    if getattr(policy, "virtual_batch", 0):
        batch = np.random.default_rng(4).random((policy.virtual_batch, *IMAGE), dtype=np.float32)
        buffers = {**buffers, "virtual_batch": batch}
    return policy.initial_state(weights, [np.random.default_rng(member) for member in members], buffers)


def _go_on(policy, weights, observations, state, buffers, steps=3):
    """Outputs of the last of several env steps. Each member gets its own observation in all of them."""
    for _ in range(steps):
        outputs = policy.act(weights, observations, np.ones(len(weights), np.float32), state, buffers)
    return outputs


def _act(policy, weights, observations, buffers=None, members=None):
    buffers = buffers or {}
    return _go_on(policy, weights, observations, _start(policy, weights, buffers, members), buffers)


def _collect_arrays(state):
    if isinstance(state, np.ndarray):
        return [state]
    branches = state.values() if isinstance(state, dict) else state or ()
    return [array for branch in branches for array in _collect_arrays(branch)]


def test_the_known_policies_are_found():
    assert {"mlp", "linear", "cnn", "hebbian", "small", "lstm", "gru", "conv_lstm"} <= {
        parameter.id for parameter in CLASSES
    }


def test_every_kernel_is_serial_and_releases_the_gil():
    objects = [value for name in MODULES for value in vars(import_module(name)).values()]
    kernels = {value for value in objects if is_jitted(value)}
    known = {"activate_kernel", "conv_kernel", "conv_pool_kernel", "dense_kernel", "linear_kernel", "_plastic_kernel"}
    assert known <= {kernel.__name__ for kernel in kernels}
    assert all(kernel.targetoptions.get("nogil") and not kernel.targetoptions.get("parallel") for kernel in kernels)


def test_only_torch_modules_imports_torch():
    imports = "; ".join(f"import {name}" for name in MODULES if name != "hebbes.policies.torch_modules")
    command = f"import sys; {imports}; sys.exit('torch' in sys.modules)"
    run_python("-c", command)


def test_shapes(policy, weights, observations):
    start = policy.initial_params(np.random.default_rng(0))
    outputs = _act(policy, weights, observations)
    assert (start.shape, start.dtype) == ((policy.layout.num_params,), np.float32)
    assert (outputs.shape, outputs.dtype) == ((MEMBERS, OUTPUTS), np.float32)
    assert len(np.unique(outputs)) == outputs.size


def test_same_seed_same_initial_params(policy):
    starts = [policy.initial_params(np.random.default_rng(7)) for _ in range(2)]
    assert np.array_equal(*starts)


@pytest.mark.parametrize("buffers", [{}, _draw_statistics(IMAGE)], ids=["plain", "statistics"])
def test_a_member_does_not_depend_on_the_batch(policy, weights, observations, buffers):
    together = _act(policy, weights, observations, buffers)
    backwards = range(MEMBERS)[::-1]
    reversed_order = _act(policy, weights[::-1].copy(), observations[::-1].copy(), buffers, backwards)[::-1]
    alone = [_act(policy, weights[i : i + 1], observations[i : i + 1], buffers, [i])[0] for i in range(MEMBERS)]
    assert np.array_equal(together, reversed_order)
    assert np.array_equal(together, np.stack(alone))


def test_a_member_does_not_depend_on_dropped_members(policy, weights, observations):
    whole, dropped = _start(policy, weights, {}), _start(policy, weights, {})
    kept = np.array([False, True, True, False, True])
    for state in (whole, dropped):
        _go_on(policy, weights, observations, state, {})
    rest = _go_on(policy, weights[kept], observations[kept], _select_members(dropped, kept), {})
    assert np.array_equal(rest, _go_on(policy, weights, observations, whole, {})[kept])


def test_a_state_holds_arrays_of_members_and_shares_no_memory_with_outputs(policy, weights, observations):
    state = _start(policy, weights, {})
    outputs = _go_on(policy, weights, observations, state, {}, steps=1)
    assert all(len(array) == MEMBERS for array in _collect_arrays(state))
    assert not any(np.shares_memory(array, other) for array in _collect_arrays(state) for other in (outputs, weights))


def test_rows_may_be_slices_of_a_larger_array(policy, weights, observations):
    expected = _act(policy, weights, observations)
    num_params = policy.layout.num_params
    wide = np.full((2 * MEMBERS, num_params + 7), np.nan, np.float32)
    every_other = wide[::2, 3 : 3 + num_params]
    every_other[:] = weights
    assert np.array_equal(_act(policy, every_other, observations), expected)
    backwards = _act(policy, weights[::-1], observations[::-1], members=range(MEMBERS)[::-1])
    assert np.array_equal(backwards[::-1], expected)


def test_inputs_may_be_read_only(policy, weights, observations):
    buffers = _draw_statistics(IMAGE)
    expected = _act(policy, weights.copy(), observations.copy(), buffers)
    for array in (weights, observations, *buffers.values()):
        array.flags.writeable = False
    assert np.array_equal(_act(policy, weights, observations, buffers), expected)


@pytest.mark.parametrize("buffers", [{}, _draw_statistics(IMAGE)], ids=["plain", "statistics"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_reach_only_the_output_of_their_member(policy, weights, observations, buffers, value):
    expected = _act(policy, weights, observations, buffers)
    observations[1, 9, 9, 1] = value
    outputs = _act(policy, weights, observations, buffers)
    assert not np.isfinite(outputs[1]).any()
    assert np.array_equal(np.delete(outputs, 1, axis=0), np.delete(expected, 1, axis=0))


@pytest.mark.parametrize("buffers", [{}, _draw_statistics(IMAGE)], ids=["plain", "statistics"])
@pytest.mark.parametrize("policy", STATIC, indirect=True)
def test_the_module_gives_the_same_outputs(policy, weights, observations, buffers):
    observations[1, 9, 9, 1] = np.inf
    outputs = _act(policy, weights, observations, buffers)
    module = as_module(policy, weights[2], buffers)
    with torch.no_grad():
        found = module(torch.from_numpy(observations)).numpy()
    np.testing.assert_allclose(found[2], outputs[2], rtol=1e-5, atol=1e-5)
    assert not np.isfinite(found[1]).any()


@pytest.mark.parametrize("buffers", [{}, _draw_statistics(IMAGE)], ids=["plain", "statistics"])
@pytest.mark.parametrize("policy", RECURRENT, indirect=True)
def test_the_module_of_a_recurrent_policy_takes_and_returns_the_state(policy, weights, observations, buffers):
    outputs = _act(policy, weights, observations, buffers)
    module, state = as_module(policy, weights[2], buffers), None
    with torch.no_grad():
        for _ in range(3):
            found, state = module(torch.from_numpy(observations), state)
    np.testing.assert_allclose(found[2].numpy(), outputs[2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("policy", PLASTIC + NORMALIZED, indirect=True)
def test_refuses_modules_of_plastic_or_normalized_policies(policy, weights):
    with pytest.raises(TypeError, match=r"as_module: got .* takes "):
        as_module(policy, weights[0], {})


def test_refuses_modules_of_a_users_subclass():
    class Negated(MLP):
        def forward(self, weights, inputs):
            return -super().forward(weights, inputs)

    with pytest.raises(TypeError, match="as_module: got Negated, takes MLP"):
        as_module(Negated((2,), 1), np.zeros(Negated((2,), 1).layout.num_params, np.float32), {})


@pytest.mark.parametrize("policy", STATIC + RECURRENT, indirect=True)
def test_the_module_is_trainable_and_in_the_order_of_the_row(policy, weights, observations):
    module = as_module(policy, weights[0], {})
    row = torch.nn.utils.parameters_to_vector(module.parameters())
    assert np.array_equal(row.detach().numpy(), weights[0])
    outputs = module(torch.from_numpy(observations))
    if isinstance(policy, RecurrentPolicy):  # the first state is zero and gives its weights no gradient
        outputs, _ = module(torch.from_numpy(observations), outputs[1])
    outputs.sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())


def test_a_policy_that_has_acted_can_be_sent_to_a_worker(policy, weights, observations):
    _act(policy, weights, observations)
    assert pickle.loads(pickle.dumps(policy)) == policy


@pytest.mark.parametrize("low_rank", [False, True])
def test_the_estimate_of_a_states_memory_covers_all_but_a_little(policy, weights, low_rank):
    if low_rank:
        factors = policy.layout.make_factor_layout(1)
        noise = np.zeros((MEMBERS, factors.num_params), np.float32)
        weights = LowRankWeights(weights[0], noise, policy.layout, factors)
    taken = sum(array.nbytes for array in _collect_arrays(_start(policy, weights, {}))) / MEMBERS
    estimated = estimate_state_bytes(policy, low_rank=low_rank)
    assert estimated <= taken <= 1.05 * estimated + 0.05 * 4 * policy.layout.num_params


def test_a_policy_says_how_many_reference_frames_it_needs(policy):
    assert count_reference_frames(policy) == getattr(policy, "virtual_batch", 0)


def test_fields_survive_json(policy):
    assert type(policy)(**json.loads(json.dumps(asdict(policy)))) == policy


def test_refuses_another_shape_of_observation(policy, weights, observations):
    with pytest.raises(ValueError, match=r"observations: got shape \(27, 20, 3\)"):
        _act(policy, weights, observations.swapaxes(1, 2))


@pytest.mark.parametrize(
    ("shape", "outputs", "option"), [((0, 20, 3), 3, "observation_shape"), (IMAGE, 0, "num_outputs")]
)
@pytest.mark.parametrize("policy_class", CLASSES)
def test_refuses_sizes_below_one(policy_class, shape, outputs, option):
    with pytest.raises(ValueError, match=option):
        policy_class(shape, outputs)
