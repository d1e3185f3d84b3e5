"""Plastic networks against `slow_plasticity`, and in cases that can be computed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_plasticity import ETA, NEURAL, NUM_SETS, SIZES, TABLE, check_against_slow_version, play_episode

from hebbes.policies import learning_rules
from hebbes.policies.hebbian import Hebbian, compute_synaptic_weights
from hebbes.policies.layers import dense
from hebbes.policies.learning_rules import NORMALIZATIONS

RULES = {**{rule: count for rule, (count, _) in TABLE.items()}, **{rule: NEURAL[rule][2] for rule in NEURAL}}
"""Rule -> number of coefficients, or of parameters, in a set."""
SHARED = [(rule, sharing, 1, "raw") for rule in TABLE for sharing in NUM_SETS if sharing != "synapse"]


def test_every_rule_has_a_slow_version():
    assert (TABLE.keys(), NEURAL.keys()) == (learning_rules.RULES.keys(), learning_rules.NEURAL_RULES.keys())


def test_a_coefficient_that_no_kernel_reads_is_refused(monkeypatch):
    monkeypatch.setitem(learning_rules.RULES, "A", ("A", "unread"))
    with pytest.raises(ValueError, match=r"^coefficients of learning rules are A, .*, got unread$"):
        _ = Hebbian((3,), 2, hebb_rule="A").layout


def draw(rng, *shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize(
    ("rule", "sharing", "update_every", "output_activity"),
    [(rule, "synapse", 1, "raw") for rule in TABLE]
    + [(rule, sharing, 1, "raw") for rule in NEURAL for sharing in ("layer", "global")]
    + [pytest.param(*each, marks=pytest.mark.slow) for each in SHARED]  # rules and sharings are tested apart
    # what decides when and from what a layer learns does not know the rule
    + [("ABCD_lr", sharing, *each) for sharing in NUM_SETS for each in ((1, "action"), (2, "raw"), (2, "action"))],
)
def test_every_rule_against_the_slow_version(rule, sharing, normalization, update_every, output_activity):
    policy = Hebbian(
        SIZES[:1], SIZES[-1], SIZES[1:-1], hebb_rule=rule, init_weights="uni_big", normalization=normalization,
        update_every=update_every, sharing=sharing, num_rules=7, output_activity=output_activity,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    check_against_slow_version(policy, draw(rng, NUM_SETS[sharing], RULES[rule], scale=0.7), draw(rng, 4, SIZES[0]))


@settings(max_examples=15)
@given(st.integers(1, 150), st.integers(1, 40), st.integers(1, 3), st.integers(0, 2**31))
def test_any_width_against_the_slow_version(num_inputs, hidden, num_outputs, seed):
    policy = Hebbian((num_inputs,), num_outputs, hidden_sizes=(hidden,), init_weights="uni_big")
    rng = np.random.default_rng(seed)
    sets = draw(rng, num_inputs * hidden + hidden * num_outputs, 5, scale=0.7)
    check_against_slow_version(policy, sets, draw(rng, 2, num_inputs), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("update_every", [1, 2, 3])
@pytest.mark.parametrize("activity_window", [2, 3, 20])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"output_activity": "action"},
        {"normalization": "clip", "modulation": "reward", "eligibility": True},
        {"normalization": "tanh", "eligibility": True},
    ],
)
def test_averaged_activities_against_the_slow_version(options, activity_window, update_every):
    axes = {"update_every": update_every, "activity_window": activity_window}
    policy = Hebbian(SIZES[:1], SIZES[-1], SIZES[1:-1], hebb_rule="ABC", sharing="global", **axes, **options)
    modulators = [-0.3, 0.9] * (policy.modulation == "reward") + [-1.0, 0.5, 1.5] * policy.eligibility
    rng, coefficients = np.random.default_rng(0), np.array([[0.5, -0.7, 0.9]], np.float32)
    check_against_slow_version(policy, coefficients, draw(rng, 8, SIZES[0]), rng.standard_normal(8), modulators)


def test_the_first_update_by_hand():
    policy = Hebbian((2,), 1, hidden_sizes=(1,), init_weights="coevolve", hebb_rule="ABCD_lr", normalization="max_abs")
    initial = [0.5, -0.25, 2.0]
    a, b, c, eta, d = [1, 2, 0], [0, 1, 1], [2, 0, 1], [0.5, 1, -1], [0, 1, 3]
    row = np.array(initial + [z for k in (a, b, c, eta, d) for z in k[:2]] + [k[2] for k in (a, b, c, eta, d)])
    outputs, _, state = play_episode(policy, row.astype(np.float32), np.array([[1, 3], [0, 0]], np.float32))
    h = np.tanh(0.5 - 0.75)
    y = 2 * h
    first = 0.5 + 0.5 * (1 * 1 * h + 0 + 2 * h + 0)
    second = -0.25 + (2 * 3 * h + 1 * 3 + 0 + 1)
    third = 2 - (0 + 1 * h + 1 * y + 3)
    largest = max(abs(first), abs(second))
    assert outputs[0, 0] == pytest.approx(y, abs=1e-6)
    found = [matrix[0].tolist() for matrix in compute_synaptic_weights(state)]
    assert found[0] == [pytest.approx([first / largest, second / largest], abs=1e-6)]
    assert found[1] == [pytest.approx([third / abs(third)], abs=1e-6)]


# each rule has kernels of its own, which take a second to compile
ZERO = [
    pytest.param(normalization, rule, sharing, *axes, marks=() if rule == "ABCD_lr" else pytest.mark.slow)
    for normalization in ("none", "oja", "clip")
    for rule in (*TABLE, *NEURAL)
    for sharing in (("layer",) if rule in NEURAL else ("synapse", "modulo") if rule == "ABCD_lr" else ("synapse",))
    for axes in (("none", False), ("reward", False), ("reward", True))
    if normalization != "oja" or rule in ETA or axes[0] == "reward"  # else oja decays without coefficients
]


@pytest.mark.parametrize(("normalization", "rule", "sharing", "modulation", "eligibility"), ZERO)
def test_coefficients_of_zero_equal_the_static_network_bit_for_bit(
    normalization, rule, sharing, modulation, eligibility
):
    # no weight is above 1, and oja does nothing where eta or M (m0 = m1 = 0) is 0
    policy = Hebbian(
        (70,), 8, hebb_rule=rule, normalization=normalization, sharing=sharing, modulation=modulation,
        eligibility=eligibility,
    )  # fmt: skip
    row = np.zeros(policy.layout.num_params, np.float32)
    if normalization != "oja" and modulation == "reward":
        policy.layout.view(row[np.newaxis], "modulation")[:] = 0.7
    observations = np.random.default_rng(0).standard_normal((3, 70)).astype(np.float32)
    found, initial, _ = play_episode(policy, row, observations, rewards=np.ones(3, np.float32))
    layout = Hebbian((70,), 8, init_weights="coevolve").layout
    static = np.zeros((3, layout.num_params), np.float32)
    static[:, : sum(matrix.size for matrix in initial)] = np.concatenate([matrix.ravel() for matrix in initial])
    assert np.array_equal(found, dense(static, layout, observations))


@pytest.mark.parametrize("normalization", ["clip", "tanh"])
@pytest.mark.parametrize("options", [{}, {"modulation": "reward", "eligibility": True}])
def test_large_weights_are_bounded_by_1_and_nan_is_kept(options, normalization):
    policy = Hebbian((3,), 1, (), hebb_rule="AD", init_weights="zeros", normalization=normalization, **options)
    row = np.zeros(policy.layout.num_params, np.float32)
    policy.layout.view(row[None], "dense1_rules")[0, 0, 1] = [3e38, -3e38, np.nan]  # D
    if options:
        policy.layout.view(row[None], "modulation")[:] = 3
    _, _, state = play_episode(policy, row, np.ones((2, 3), np.float32), rewards=np.ones(2))
    np.testing.assert_allclose(compute_synaptic_weights(state)[0][0, 0], [1, -1, np.nan], rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"sharing": "layer"},
        {"sharing": "neuron"},
        {"sharing": "modulo"},
        {"sharing": "clusters"},
        {"sharing": "layer", "hebb_rule": "neural_9"},
        {"modulation": "reward", "eligibility": True},
    ],
)
def test_low_rank_noise_treats_no_coefficients_as_a_matrix(options):
    policy = Hebbian((4,), 2, (3,), num_rules=5, init_weights="coevolve", **options)
    assert policy.layout.matrices == {"dense1", "dense2"}
    assert all(name in policy.layout.shapes for name in policy.rule_arrays)


def test_a_layer_of_zeros_stays_finite():
    policy = Hebbian((3,), 2, hidden_sizes=(4,), init_weights="zeros")
    outputs, _, _ = play_episode(policy, np.zeros(policy.layout.num_params, np.float32), np.ones((4, 3), np.float32))
    assert np.array_equal(outputs, np.zeros((4, 2)))


def test_max_abs_divides_by_tiny_weights():
    policy = Hebbian((2,), 1, hidden_sizes=(1,), init_weights="coevolve", hebb_rule="A")
    row = np.array([1e-40, -5e-41, 1e-40, 0, 0, 0], np.float32)
    _, _, state = play_episode(policy, row, np.ones((2, 2), np.float32))
    assert compute_synaptic_weights(state)[0][0, 0] == pytest.approx([1, -0.5], rel=1e-3)


def test_weights_that_overflow_behind_a_tanh_reach_the_output():
    policy = Hebbian((2,), 1, hidden_sizes=(2,), init_weights="ones", hebb_rule="AD", normalization="none")
    row = np.zeros(policy.layout.num_params, np.float32)
    policy.layout.view(row[None], "dense1_rules")[:, :, 1] = 3e38  # D
    outputs, _, _ = play_episode(policy, row, np.ones((4, 2), np.float32))
    assert np.isfinite(outputs[0]).all()
    assert np.isnan(outputs[1:]).all()
