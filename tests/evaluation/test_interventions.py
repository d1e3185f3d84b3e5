from dataclasses import replace

import numpy as np
import pytest

from hebbes.evaluation.interventions import FrozenPolicy, LesionedPolicy, ResetPolicy, replace_initial_weights
from hebbes.execution.episode import _select_members
from hebbes.policies.hebbian import Hebbian, compute_synaptic_weights
from hebbes.policies.initial_weights import INITIAL_WEIGHTS
from hebbes.policies.mlp import MLP

MEMBERS, ENV_STEPS = 3, 8
PLASTIC = Hebbian((3,), 2, hidden_sizes=(6, 5))
ROWS = np.stack([PLASTIC.initial_params(np.random.default_rng(member)) for member in range(MEMBERS)])
OBSERVATIONS = np.random.default_rng(9).normal(size=(ENV_STEPS, MEMBERS, 3)).astype(np.float32)


def play(policy, rows=ROWS):
    """Outputs, and the weights that acted in each env step. Member k's generator has seed k."""
    rngs = [np.random.default_rng(member) for member in range(MEMBERS)]
    state, outputs, weights = policy.initial_state(rows, rngs, {}), [], []
    for observations in OBSERVATIONS:
        outputs.append(policy.act(rows, observations, np.zeros(MEMBERS, np.float32), state, {}))
        weights.append(compute_synaptic_weights(state))
    return outputs, weights


def are_same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("at", [0, 1])
def test_freezing_at_the_start_equals_the_static_network_of_the_initial_weights(at):
    plastic = replace(PLASTIC, init_weights="coevolve")
    rows = np.stack([plastic.initial_params(np.random.default_rng(member)) for member in range(MEMBERS)])
    static = MLP((3,), 2, hidden_sizes=(6, 5))
    start = np.ascontiguousarray(rows[:, : static.layout.num_params])
    expected = [static.act(start, each, np.zeros(MEMBERS, np.float32), None, {}) for each in OBSERVATIONS]
    assert are_same(play(FrozenPolicy(plastic, at), rows)[0], expected)


def test_freezing_keeps_earlier_learning_and_stops_later_learning():
    outputs, weights = play(FrozenPolicy(PLASTIC, 4))
    intact, learned = play(PLASTIC)
    assert are_same(outputs[:4], intact[:4])
    assert not np.array_equal(outputs[4], intact[4])
    assert all(are_same(after, learned[3]) for after in weights[4:])


@pytest.mark.parametrize("update_every", [1, 3])
def test_a_reset_draws_new_weights_in_its_env_step_and_learning_goes_on(update_every):
    policy = replace(PLASTIC, update_every=update_every)
    outputs, weights = play(ResetPolicy(policy, 4))
    intact, learned = play(policy)
    assert are_same(outputs[:4], intact[:4])
    rngs = [np.random.default_rng(member) for member in range(MEMBERS)]
    shapes = [(6, 3), (5, 6), (2, 5)]
    _, fresh = ([[INITIAL_WEIGHTS["uni"](rng, shape) for shape in shapes] for rng in rngs] for _ in range(2))
    assert are_same(weights[4], [np.stack(layer) for layer in zip(*fresh, strict=True)])
    assert not are_same(weights[4], learned[0])  # not the initial weights again
    assert np.abs(weights[7][0]).max() == 1  # it has learned and normalized again


def test_a_reset_restores_searched_initial_weights():
    plastic = replace(PLASTIC, init_weights="coevolve")
    rows = np.stack([plastic.initial_params(np.random.default_rng(member)) for member in range(MEMBERS)])
    _, weights = play(ResetPolicy(plastic, 4), rows)
    assert are_same(weights[4], [plastic.layout.view(rows, f"dense{layer}") for layer in (1, 2, 3)])
    assert not are_same(weights[3], weights[4])


def test_a_lesion_of_all_neurons_silences_the_network():
    assert all((outputs == 0).all() for outputs in play(LesionedPolicy(PLASTIC, 1.0))[0])


def test_silent_neurons_are_silent_for_the_next_layer_and_for_learning():
    lesioned = LesionedPolicy(replace(PLASTIC, hebb_rule="A", normalization="none"), 0.5)
    assert lesioned.num_silent == (3, 2)  # of 6 and 5 neurons, rounded half to even
    rows = np.ones((MEMBERS, lesioned.layout.num_params), np.float32)
    rngs = [np.random.default_rng(member) for member in range(MEMBERS)]
    state = lesioned.initial_state(rows, rngs, {})
    silent, start = [layer.copy() for layer in state["silent"]], compute_synaptic_weights(state)
    assert [layer.sum(axis=1).tolist() for layer in silent] == [[3] * MEMBERS, [2] * MEMBERS]
    assert not (silent[0] == silent[0][0]).all()  # each member has its own
    for observations in OBSERVATIONS:
        lesioned.act(rows, observations, np.zeros(MEMBERS, np.float32), state, {})
    first, second, last = (now != then for now, then in zip(compute_synaptic_weights(state), start, strict=True))
    assert (first.any(axis=2) == ~silent[0]).all()  # x y changes no synapse of a silent neuron
    assert (second.any(axis=2) == ~silent[1]).all()
    assert (last.any(axis=1) == ~silent[1]).all()


@pytest.mark.parametrize(
    "changed", [LesionedPolicy(PLASTIC, 0.0), FrozenPolicy(PLASTIC, ENV_STEPS), ResetPolicy(PLASTIC, ENV_STEPS)]
)
def test_an_intervention_without_effect_equals_the_intact_episode(changed):
    assert are_same(play(changed)[0], play(PLASTIC)[0])


@pytest.mark.parametrize("changed", [FrozenPolicy(PLASTIC, 3), ResetPolicy(PLASTIC, 3), LesionedPolicy(PLASTIC, 0.4)])
def test_an_episode_depends_only_on_its_own_generator(changed):
    together, again = play(changed)[0], play(changed)[0]
    assert are_same(together, again)
    state = changed.initial_state(ROWS[1:2], [np.random.default_rng(1)], {})
    alone = [changed.act(ROWS[1:2], each[1:2], np.zeros(1, np.float32), state, {}) for each in OBSERVATIONS]
    assert are_same(alone, [outputs[1:2] for outputs in together])


@pytest.mark.parametrize("changed", [FrozenPolicy(PLASTIC, 3), ResetPolicy(PLASTIC, 5), LesionedPolicy(PLASTIC, 0.4)])
def test_an_episode_does_not_depend_on_dropped_members(changed):
    whole = play(changed)[0]
    rngs, kept = [np.random.default_rng(member) for member in range(MEMBERS)], np.array([True, False, True])
    state = changed.initial_state(ROWS, rngs, {})
    for observations in OBSERVATIONS[:2]:
        changed.act(ROWS, observations, np.zeros(MEMBERS, np.float32), state, {})
    state = _select_members(state, kept)
    rest = [changed.act(ROWS[kept], each[kept], np.zeros(2, np.float32), state, {}) for each in OBSERVATIONS[2:]]
    assert are_same(rest, [outputs[kept] for outputs in whole[2:]])


@pytest.mark.parametrize("update_every", [1, 2])
def test_a_reward_before_a_reset_changes_no_weight_after_it(update_every):
    # one weight, initially 0. Every change is tanh(0.1 r), and r is 1 in every env step
    plastic = Hebbian(
        (1,), 1, hidden_sizes=(), hebb_rule="AD", init_weights="zeros", normalization="none", modulation="reward",
        update_every=update_every,
    )  # fmt: skip
    changed, row = ResetPolicy(plastic, 3), np.array([[0, 1, 0, 0.1]], np.float32)  # A, D, m0, m1
    state, weights = changed.initial_state(row, [np.random.default_rng(0)], {}), []
    for previous_reward in (0, 1, 1, 1, 1, 1):
        changed.act(row, np.ones((1, 1), np.float32), np.full(1, previous_reward, np.float32), state, {})
        weights.append(compute_synaptic_weights(state)[0].item())
    one, two = np.tanh(0.1), np.tanh(0.2)
    expected = {1: [0, one, 2 * one, 0, one, 2 * one], 2: [0, 0, two, 0, one, one]}
    assert weights == pytest.approx(expected[update_every], abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"eligibility": True}, {"activity_window": 3}])
def test_nothing_from_before_a_reset_changes_weights_after_it(options):
    policy = replace(PLASTIC, modulation="reward", normalization="none", **options)
    rows = np.stack([policy.initial_params(np.random.default_rng(member)) for member in range(MEMBERS)])
    played = []
    for sign in (1, -1):
        changed, weights = ResetPolicy(policy, 4), []
        state = changed.initial_state(rows, [np.random.default_rng(member) for member in range(MEMBERS)], {})
        for env_step, observations in enumerate(OBSERVATIONS):
            seen, rewards = observations * (sign if env_step < 4 else 1), np.ones(MEMBERS, np.float32)
            changed.act(rows, seen, rewards, state, {})
            weights.append(compute_synaptic_weights(state))
        played.append(weights)
    one, other = played
    assert not are_same(one[3], other[3])
    assert all(are_same(a, b) for a, b in zip(one[4:], other[4:], strict=True))
    assert not are_same(one[4], one[7])


@pytest.mark.parametrize("options", [{}, {"activity_window": 3}, {"activity_window": 3, "update_every": 2}])
def test_learning_after_a_reset_is_that_of_an_episode_that_begins_with_the_new_weights(options):
    policy, no_rewards = replace(PLASTIC, normalization="none", **options), np.zeros(MEMBERS, np.float32)
    changed, begun = ResetPolicy(policy, 4), policy.initial_state(ROWS, [np.random.default_rng(9)] * MEMBERS, {})
    state = changed.initial_state(ROWS, [np.random.default_rng(member) for member in range(MEMBERS)], {})
    for weights, new in zip(begun["weights"], state["to_come"]["weights"], strict=True):
        weights[:] = new
    for env_step, observations in enumerate(OBSERVATIONS):
        outputs = changed.act(ROWS, observations, no_rewards, state, {})
        if env_step >= 4:
            assert np.array_equal(outputs, policy.act(ROWS, observations, no_rewards, begun, {}))


@pytest.mark.parametrize("options", [{}, {"eligibility": True}, {"activity_window": 50}])
@pytest.mark.parametrize(("kind", "times"), [(FrozenPolicy, 1), (ResetPolicy, 2)])
def test_the_state_takes_the_memory_that_is_estimated(kind, times, options):
    policy = Hebbian((60,), 20, hidden_sizes=(200, 100), modulation="reward", **options)
    row = policy.initial_params(np.random.default_rng(0))[np.newaxis]
    changed = kind(policy, 3)
    rngs = [np.random.default_rng(0)]
    tree, total = [changed.initial_state(row, rngs, {})], 0
    while tree:
        branch = tree.pop()
        if isinstance(branch, np.ndarray):
            total += branch.nbytes
        elif branch is not None:
            tree += branch.values() if isinstance(branch, dict) else branch
    assert changed.estimate_state_bytes(low_rank=False) == pytest.approx(total, rel=0.05)
    assert total > times * 4 * (60 * 200 + 200 * 100 + 100 * 20)


@pytest.mark.parametrize(("hidden_sizes", "fraction"), [((), 0.5), ((4, 3), 0.1)])
def test_refuses_a_lesion_that_silences_no_neuron(hidden_sizes, fraction):
    with pytest.raises(ValueError, match=f"lesion: got {fraction}, which silences no neuron; hidden layers: "):
        LesionedPolicy(Hebbian((3,), 2, hidden_sizes), fraction)


def test_replaces_initial_weights():
    _, weights = play(replace_initial_weights(PLASTIC, "ones"))
    assert all((layer == 1).all() for layer in weights[0])


@pytest.mark.parametrize(("own", "other"), [("coevolve", "uni"), ("uni", "coevolve")])
def test_refuses_to_replace_searched_initial_weights(own, other):
    with pytest.raises(ValueError, match=f"init_weights cannot change from {own} to {other}"):
        replace_initial_weights(replace(PLASTIC, init_weights=own), other)
