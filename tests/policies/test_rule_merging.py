import numpy as np
import pytest

from hebbes.policies import rule_merging
from hebbes.policies.coefficients import read_synaptic_coefficients
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.mlp import MLP
from hebbes.policies.rule_merging import merge_rules

SIZES = ((4, 6), (3, 4))  # (out, in) of Hebbian((6,), 3, hidden_sizes=(4,))
SYNAPSES = 36
COUNT = 5  # coefficients of ABCD_lr


def make_policy(**options):
    return Hebbian((6,), 3, hidden_sizes=(4,), **options)


def make_row(policy, coefficients, start=()):
    """The row of a policy with sharing `synapse`: `start`, then (out, coefficients, in) of each layer."""
    layers, first = [np.asarray(start)], 0
    for num_outputs, num_inputs in SIZES:
        block = coefficients[first : first + num_outputs * num_inputs].reshape(num_outputs, num_inputs, COUNT)
        layers.append(np.stack([block[..., place] for place in range(COUNT)], axis=1).ravel())
        first += num_outputs * num_inputs
    row = np.concatenate(layers).astype(np.float32)
    assert row.shape == (policy.layout.num_params,)
    return row


def play_episode(policy, row, buffers, steps=5):
    """Outputs of every env step of one member."""
    observations = np.random.default_rng(8).normal(size=(steps, 1, 6)).astype(np.float32)
    state = policy.initial_state(row[None], [np.random.default_rng(9)], buffers)
    return np.stack([policy.act(row[None], each, np.zeros(1, np.float32), state, buffers)[0] for each in observations])


def make_rng():
    return np.random.default_rng(0)


@pytest.fixture
def groups():
    """Each synapse's group, one of three distant groups, and its coefficients."""
    draw = np.random.default_rng(1)
    which = draw.permutation(np.arange(SYNAPSES) % 3)
    centers = np.array([[4.0] * COUNT, [-4.0] * COUNT, [4.0, -4.0, 4.0, -4.0, 4.0]])
    return which, (centers[which] + 0.1 * draw.normal(size=(SYNAPSES, COUNT))).astype(np.float32)


def test_the_distances_in_memory_are_limited(monkeypatch):
    coefficients = np.random.default_rng(3).normal(size=(SYNAPSES, COUNT)).astype(np.float32)
    policy, sizes, nearest = make_policy(), [], rule_merging.vq
    row = make_row(policy, coefficients)
    monkeypatch.setattr(
        rule_merging, "vq", lambda points, centroids: sizes.append(len(points)) or nearest(points, centroids)
    )
    whole = merge_rules(policy, row, {}, 6, make_rng())
    assert set(sizes) == {SYNAPSES}
    sizes.clear()
    monkeypatch.setattr(rule_merging, "_MOST_DISTANCES", 65)
    assert np.array_equal(merge_rules(policy, row, {}, 6, make_rng()).weights, whole.weights)
    assert set(sizes) == {10, SYNAPSES % 10}


def test_the_iterations_end_where_each_synapse_has_the_nearest_rule():
    coefficients = np.random.default_rng(3).normal(size=(SYNAPSES, COUNT)).astype(np.float32)
    policy = make_policy()
    result = merge_rules(policy, make_row(policy, coefficients), {}, 6, make_rng())
    own = read_synaptic_coefficients(result.policy, result.weights, result.buffers)
    rules = np.unique(own, axis=0)
    assert len(rules) == 6
    distances = np.square(coefficients[:, None] - rules).sum(axis=2)
    assert np.square(coefficients - own).sum(axis=1) == pytest.approx(distances.min(axis=1))


def test_a_few_rules_that_are_far_from_all_others_are_found_with_any_seed():
    """k-means++ draws them first. A uniform draw of four of the 36 synapses would miss most of them."""
    coefficients = np.random.default_rng(3).normal(0, 0.01, (SYNAPSES, COUNT)).astype(np.float32)
    coefficients[[5, 17, 30]] += np.array([[10.0], [-10.0], [30.0]], np.float32)
    policy = make_policy()
    for seed in range(10):
        result = merge_rules(policy, make_row(policy, coefficients), {}, 4, np.random.default_rng(seed))
        assert result.error < 0.01


@pytest.mark.parametrize("init_weights", ["uni", "coevolve"])
def test_synapses_take_the_mean_rule_of_their_group(groups, init_weights):
    which, coefficients = groups
    policy = make_policy(init_weights=init_weights)
    start = np.linspace(-1, 1, SYNAPSES) if init_weights == "coevolve" else ()
    result = merge_rules(
        policy, make_row(policy, coefficients, start), {"observation_mean": np.zeros(6)}, 3, make_rng()
    )
    means = np.stack([coefficients[which == group].astype(np.float64).mean(axis=0) for group in range(3)])
    assert (result.policy.sharing, result.policy.num_rules) == ("clusters", 3)
    assert len(result.weights) == len(start) + 3 * COUNT
    assert set(result.buffers) == {"observation_mean", "rule_table.dense1", "rule_table.dense2"}
    expected = play_episode(policy, make_row(policy, means[which], start), {})
    found = {name: array for name, array in result.buffers.items() if name.startswith("rule_table")}
    np.testing.assert_allclose(play_episode(result.policy, result.weights, found), expected, rtol=1e-5, atol=1e-6)
    errors = np.square(coefficients - means[which]).sum(axis=1)
    assert result.error == pytest.approx(errors.mean(), rel=1e-5)
    assert result.variance == pytest.approx(coefficients.var(axis=0).sum(), rel=1e-5)


def test_merging_keeps_modulation_and_eligibility(groups):
    policy = make_policy(modulation="reward", eligibility=True)
    row = np.concatenate([make_row(make_policy(), groups[1]), [1, 2, 3, 4]]).astype(np.float32)
    result = merge_rules(policy, row, {}, 3, make_rng())
    names = ("modulation", "eligibility")
    kept = [result.policy.layout.view(result.weights[None], name)[0].tolist() for name in names]
    assert kept == [[1, 2], [3, 4]]


@pytest.mark.parametrize("sharing", ["synapse", "modulo"])
def test_merging_to_all_different_rules_changes_nothing(sharing):
    policy = make_policy(sharing=sharing, num_rules=7)
    row = policy.initial_params(make_rng())
    different = SYNAPSES if sharing == "synapse" else 7
    result = merge_rules(policy, row, {}, SYNAPSES, make_rng())
    assert result.policy.num_rules == different
    assert result.error == pytest.approx(0, abs=1e-12)
    expected = play_episode(policy, row, {})
    np.testing.assert_allclose(
        play_episode(result.policy, result.weights, result.buffers), expected, rtol=1e-5, atol=1e-6
    )


def test_merges_again_and_uses_every_rule(groups):
    policy = make_policy()
    row = policy.initial_params(make_rng())
    once = merge_rules(policy, row, {}, 12, make_rng())
    twice = merge_rules(once.policy, once.weights, once.buffers, 4, make_rng())
    for result, count in ((once, 12), (twice, 4)):
        numbers = np.concatenate([table.ravel() for table in result.buffers.values()])
        assert np.unique(numbers).tolist() == list(range(count))
    assert 0 < once.error < twice.error < twice.variance
    first, second = (
        read_synaptic_coefficients(result.policy, result.weights, result.buffers) for result in (once, twice)
    )
    for rule in np.unique(first, axis=0):  # synapses with the same rule keep the same rule
        assert len(np.unique(second[(first == rule).all(axis=1)], axis=0)) == 1


def test_the_same_seed_gives_the_same_rules():
    policy = make_policy()
    row = policy.initial_params(make_rng())
    one, two, other = (merge_rules(policy, row, {}, 6, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(one.weights, two.weights)
    assert not np.array_equal(one.weights, other.weights)


def test_merging_keeps_kernels():
    policy = Hebbian((20, 27, 3), 2, hidden_sizes=(4,))
    row = policy.initial_params(make_rng())
    result = merge_rules(policy, row, {}, 5, make_rng())
    assert np.array_equal(result.weights[:1362], row[:1362])
    assert len(result.weights) == 1362 + 5 * COUNT


@pytest.mark.parametrize(
    ("options", "num_rules", "message"),
    [
        (
            {"sharing": "layer"},
            2,
            "ABCD_lr and sharing layer has no rule for each synapse.* synapse, modulo or clusters",
        ),
        ({"sharing": "neuron"}, 2, "sharing neuron"),
        ({"sharing": "global", "hebb_rule": "neural_9"}, 2, "neural_9 and sharing global"),
        ({}, 37, "num_rules must be 1 to the number of synapses, 36, got 37"),
        ({}, 0, "got 0"),
    ],
)
def test_refuses_what_cannot_be_merged(options, num_rules, message):
    policy = make_policy(**options)
    with pytest.raises(ValueError, match=message):
        merge_rules(policy, policy.initial_params(make_rng()), {}, num_rules, make_rng())


TABLES = {"rule_table.dense1": np.zeros((4, 6), np.uint32), "rule_table.dense2": np.ones((3, 4), np.uint32)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule_table.dense2": None}, "needs the buffer rule_table.dense2.* `hebbes merge`"),
        ({"rule_table.dense1": np.full((4, 6), 2, np.uint32)}, "rule_table.dense1: got rule 2, the rules are 0 to 1"),
        ({"rule_table.dense1": np.zeros((4, 6), np.int64)}, "got int64 of shape"),
        ({"rule_table.dense1": np.zeros((4, 6), ">u4")}, "got >u4 of shape"),
        ({"rule_table.dense1": np.zeros((6, 4), np.uint32)}, r"shape \(6, 4\), expected uint32 of shape \(4, 6\)"),
    ],
)
def test_refuses_invalid_tables(changes, message):
    policy = make_policy(sharing="clusters", num_rules=2)
    buffers = {name: array for name, array in (TABLES | changes).items() if array is not None}
    row = policy.initial_params(make_rng())
    policy.check_buffers(TABLES)
    with pytest.raises(ValueError, match=message):
        policy.check_buffers(buffers)
    with pytest.raises(ValueError, match=message):
        play_episode(policy, row, buffers)


def test_other_policies_need_no_buffers():
    for policy in (make_policy(), make_policy(sharing="modulo", num_rules=3), MLP((6,), 3)):
        policy.check_buffers({})
