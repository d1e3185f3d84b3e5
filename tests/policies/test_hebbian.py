import numpy as np
import pytest

from hebbes.files.reference_coefficients import convert_reference_coefficients
from hebbes.policies.cnn import CNN
from hebbes.policies.hebbian import Hebbian, compute_synaptic_weights
from hebbes.policies.initial_weights import INITIAL_WEIGHTS
from hebbes.policies.mlp import MLP
from tests.shape_checks import unchecked

ANT = 28 * 128 + 128 * 64 + 64 * 8


def _make_rngs(members):
    return [np.random.default_rng(member) for member in members]


@pytest.mark.parametrize(
    ("shape", "outputs", "options", "expected"),
    [
        ((84, 84, 3), 3, {}, 458_002),
        ((28,), 8, {}, 61_440),
        ((28,), 8, {"init_weights": "coevolve"}, 61_440 + ANT),
        ((28,), 8, {"hebb_rule": "A"}, ANT),
        ((16, 16, 3), 2, {"hebb_rule": "A", "hidden_sizes": (4,)}, 6 * 27 + 8 * 150 + 8 * 4 + 4 * 2),
        ((15, 16, 3), 2, {"hebb_rule": "A", "hidden_sizes": (4,)}, 720 * 4 + 4 * 2),  # too small for convolutions
        ((28,), 8, {"hebb_rule": "ABCD_lr_D_in_and_out"}, 6 * ANT),
        ((28,), 8, {"sharing": "modulo"}, 640),
        ((28,), 8, {"sharing": "layer"}, 15),
        ((28,), 8, {"sharing": "global"}, 5),
        ((28,), 8, {"sharing": "neuron"}, 5 * (28 + 128 + 64 + 8)),
        ((28,), 8, {"hebb_rule": "neural_9", "sharing": "global"}, 9),
        ((28,), 8, {"hebb_rule": "neural_18", "sharing": "global"}, 18),
        ((28,), 8, {"hebb_rule": "neural_25", "sharing": "layer"}, 75),
    ],
)
def test_parameter_counts(shape, outputs, options, expected):
    assert Hebbian(shape, outputs, **options).layout.num_params == expected


@pytest.mark.parametrize("kind", list(INITIAL_WEIGHTS))
def test_initial_weights_come_from_the_members_own_generator(kind):
    policy = Hebbian((30,), 2, hidden_sizes=(20,), init_weights=kind)
    rows = np.zeros((3, policy.layout.num_params), np.float32)
    together = compute_synaptic_weights(policy.initial_state(rows, _make_rngs([0, 1, 2]), {}))
    alone = compute_synaptic_weights(policy.initial_state(rows[:1], _make_rngs([1]), {}))
    expected = [INITIAL_WEIGHTS[kind](rng, (20, 30)) for rng in _make_rngs([0, 1, 2])]
    assert np.array_equal(together[0], expected)
    assert all(np.array_equal(layer[1], only[0]) for layer, only in zip(together, alone, strict=True))


@pytest.mark.parametrize(("shape", "static"), [((28,), MLP((28,), 8)), ((20, 27, 3), CNN((20, 27, 3), 8))])
def test_a_coevolved_network_begins_as_the_static_network_of_its_row(shape, static):
    policy = Hebbian(shape, 8, init_weights="coevolve")
    rows = np.stack([policy.initial_params(rng) for rng in _make_rngs([0, 1])])
    observations = np.random.default_rng(2).random((2, *shape), dtype=np.float32)
    before, reward = rows.copy(), np.zeros(2, np.float32)
    state = policy.initial_state(rows, _make_rngs([0, 1]), {})
    expected = static.act(rows[:, : static.layout.num_params].copy(), observations, reward, None, {})
    assert np.array_equal(policy.act(rows, observations, reward, state, {}), expected)
    assert not np.array_equal(policy.act(rows, observations, reward, state, {}), expected)
    assert np.array_equal(rows, before)


@pytest.mark.parametrize(("distribution", "deviation", "largest"), [("normal", 1, 6), ("uniform", 3**-0.5, 1)])
def test_initial_coefficients_follow_distribution_and_kernels_equal_cnn(distribution, deviation, largest):
    policy = Hebbian((84, 84, 3), 3, distribution=distribution)
    params = policy.initial_params(np.random.default_rng(0))
    coefficients = params[1_362:]
    assert coefficients.std() == pytest.approx(deviation, rel=0.01)
    assert 0.99 * deviation * 3**0.5 < np.abs(coefficients).max() <= largest
    assert np.array_equal(params[:1_362], CNN((84, 84, 3), 3).initial_params(np.random.default_rng(0))[:1_362])


def test_reference_coefficients_reach_their_synapses():
    policy = Hebbian((2,), 2, hidden_sizes=(3,), hebb_rule="AD_lr", init_weights="coevolve")
    # the digits of each value are the layer, the presynaptic and postsynaptic neuron, and the column
    table = [
        [1000 * layer + 100 * i + 10 * j + k for k in range(3)]
        for layer, (into, out) in enumerate([(2, 3), (3, 2)], start=1)
        for i in range(into)
        for j in range(out)
    ]
    row = convert_reference_coefficients(policy, np.array(table, np.float64), np.arange(12.0))
    layout = policy.layout
    views = {name: layout.view(row[None], name)[0] for name in layout.shapes}
    assert views["dense1"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert views["dense2_rules"][:, 0].tolist() == [[2000, 2100, 2200], [2010, 2110, 2210]]
    assert views["dense1_rules"][:, 1].tolist() == [[1001, 1101], [1011, 1111], [1021, 1121]]
    assert views["dense1_rules"][:, 2].tolist() == [[1002, 1102], [1012, 1112], [1022, 1122]]


def test_reference_coefficients_of_another_rule_or_network_are_refused():
    policy = Hebbian((2,), 2, hidden_sizes=(3,), hebb_rule="AD")
    with pytest.raises(ValueError, match=r"coefficients: got shape \(12, 3\), AD takes \(12, 2\)"):
        convert_reference_coefficients(policy, np.zeros((12, 3)), np.zeros(0))
    with pytest.raises(ValueError, match=r"takes \(91328, 2\), or 184018 numbers, the first 1362 for kernels"):
        convert_reference_coefficients(Hebbian((84, 84, 3), 3, hebb_rule="AD"), np.zeros(184_017), np.zeros(0))
    with pytest.raises(ValueError, match="path_coev: got 5 numbers, the network has 0"):
        convert_reference_coefficients(policy, np.zeros((12, 2)), np.zeros(5))
    with pytest.raises(ValueError, match=r"sharing must be synapse and hebb_rule one of A, .*, got layer and"):
        convert_reference_coefficients(Hebbian((2,), 2, sharing="layer"), np.zeros((12, 2)), np.zeros(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sharing": "modulo", "num_rules": 12_289}, "num_rules must be <= 12288, the number of synapses, got 12289"),
        ({"sharing": "clusters", "num_rules": 12_289}, "num_rules must be <= 12288, the number of synapses, got 12289"),
        (
            {"sharing": "layer", "hidden_sizes": (9_000, 9_000)},
            "hidden_sizes must make at most .* synapses, got 81324000",
        ),
        ({"hebb_rule": "neural_9"}, "sharing must be layer or global with hebb_rule neural_9, got synapse"),
        ({"hebb_rule": "neural_9", "sharing": "clusters"}, "layer or global with hebb_rule neural_9, got clusters"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Hebbian((28,), 8, **options)


@unchecked()
def test_weights_of_another_network_are_refused():
    policy = Hebbian((3,), 2)
    rows = np.zeros((1, policy.layout.num_params), np.float32)
    state = policy.initial_state(rows, _make_rngs([0]), {})
    with pytest.raises(ValueError, match="weights: got shape"):
        policy.act(rows[:, 1:], np.ones((1, 3)), np.zeros(1, np.float32), state, {})
    with pytest.raises(ValueError, match="rows must be contiguous float32"):
        policy.act(rows.astype(np.float64), np.ones((1, 3)), np.zeros(1, np.float32), state, {})
