"""Plasticity modulated by reward, and eligibility traces, against `slow_plasticity`."""

import numpy as np
import pytest
from slow_plasticity import NEURAL, NUM_SETS, SIZES, TABLE, check_against_slow_version, play_episode

from hebbes.files.reference_coefficients import convert_reference_coefficients
from hebbes.policies.hebbian import Hebbian, compute_synaptic_weights

AXES = [("reward", False), ("none", True), ("reward", True)]
M = [-0.3, 0.9]
RATES = [-1.0, 0.5, 1.5]
"""Of the three layers, before the sigmoid."""
REWARDS = np.array([0.5, -2.0, 1.0, 0.0, 3.0, 0.0])


@pytest.mark.parametrize(("modulation", "eligibility"), AXES)
@pytest.mark.parametrize(
    ("rule", "sharing", "normalization", "update_every"),
    # only oja's decay depends on the rule, and modulation does not know the sharing
    [
        pytest.param(
            *(rule, "synapse", normalization, 1),
            marks=() if rule in ("A", "ABCD_lr_D_in_and_out") else pytest.mark.slow,
        )
        for rule in TABLE
        for normalization in ("none", "oja")
    ]
    + [("ABCD_lr", sharing, each, 2) for sharing in NUM_SETS for each in ("none", "max_abs", "clip", "oja")]
    + [(rule, "layer", each, 1) for rule in NEURAL for each in ("max_abs", "oja")],
)
def test_every_rule_and_sharing(rule, sharing, modulation, eligibility, normalization, update_every):
    policy = Hebbian(
        SIZES[:1], SIZES[-1], SIZES[1:-1], hebb_rule=rule, init_weights="uni_big", normalization=normalization,
        update_every=update_every, sharing=sharing, num_rules=7, modulation=modulation, eligibility=eligibility,
    )  # fmt: skip
    rng, size = np.random.default_rng(0), NEURAL[rule][2] if rule in NEURAL else TABLE[rule][0]
    sets = rng.normal(0, 0.5, (NUM_SETS[sharing], size)).astype(np.float32)
    observations = rng.standard_normal((6, SIZES[0])).astype(np.float32)
    modulators = M * (modulation == "reward") + RATES * eligibility
    check_against_slow_version(policy, sets, observations, REWARDS, modulators)


def _play_one_synapse(rewards, row, **options):
    """The weight in each env step. It starts at 0.5. The observation is 1, so that y = w and the change is A w."""
    policy = Hebbian((1,), 1, (), hebb_rule="A", init_weights="coevolve", normalization="none", **options)
    weights = np.array([[0.5, *row]], np.float32)
    state, found = policy.initial_state(weights, [np.random.default_rng(0)], {}), []
    for reward in (0, *rewards):
        policy.act(weights, np.ones((1, 1), np.float32), np.array([reward], np.float32), state, {})
        found.append(float(compute_synaptic_weights(state)[0][0, 0, 0]))
    return found


def test_reward_gives_the_change_its_sign_and_size_by_hand():
    up, down = 1 + np.tanh(2), 1 + np.tanh(-1.5)  # A = 1, m0 = 0.25, m1 = 1.75
    found = _play_one_synapse([1, -1], [1, 0.25, 1.75], modulation="reward")
    assert found == pytest.approx([0.5, 0.5 * up, 0.5 * up * down], rel=1e-5)


def test_rewards_between_updates_add_up():
    # updates come before the third and the fifth act, with the rewards 1 + 2 and 0.5 - 0.5
    found = _play_one_synapse([1, 2, 0.5, -0.5], [1, 0, 0.25], modulation="reward", update_every=2)
    after = 0.5 * (1 + np.tanh(0.75))
    assert found == pytest.approx([0.5, 0.5, after, after, after], rel=1e-5)


def test_a_trace_carries_a_change_to_a_later_reward():
    # k = 1/2, m0 = 0. First update: E is 0.25 and the reward of 0 makes M 0. Second: E is 0.25 / 2 + 0.5 / 2
    found = _play_one_synapse([0, 1], [1, 0, 10, 0], modulation="reward", eligibility=True)
    assert found == pytest.approx([0.5, 0.5, 0.5 + 0.25 / 2 + 0.5 / 2], rel=1e-5)


def test_punishment_does_not_turn_ojas_decay_into_growth():
    policy = Hebbian((1,), 1, (), hebb_rule="A", init_weights="ones", normalization="oja", modulation="reward")
    row = np.array([0, 0, 1], np.float32)  # A = 0: only the decay
    rewards = np.array([-2, 0, 0], np.float32)
    _, _, state = play_episode(policy, row, np.ones((3, 1), np.float32), rewards=rewards)
    assert compute_synaptic_weights(state)[0][0, 0, 0] == pytest.approx(1 - np.tanh(2), rel=1e-5)


@pytest.mark.parametrize("sharing", ["synapse", "neuron"])
def test_modulation_of_one_equals_the_plain_rule(sharing):
    """m0 is so large that M is 1, and k = 1: equal up to rounding."""
    plain, full = (
        Hebbian((40,), 3, (9,), sharing=sharing, modulation=modulation, eligibility=modulation == "reward")
        for modulation in ("none", "reward")
    )
    row = plain.initial_params(np.random.default_rng(0))
    observations = np.random.default_rng(1).standard_normal((4, 40)).astype(np.float32)
    expected, _, _ = play_episode(plain, row, observations)
    found, _, _ = play_episode(full, np.append(row, [50, 0, 50, 50]).astype(np.float32), observations)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("modulation", "eligibility"), AXES)
def test_a_member_depends_on_neither_the_batch_nor_its_layout(modulation, eligibility):
    policy = Hebbian((20, 27, 3), 3, modulation=modulation, eligibility=eligibility, update_every=2)
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((5, policy.layout.num_params + 3), dtype=np.float32) / 4
    rows = wide[:, 3:]
    observations = rng.random((4, 5, 20, 27, 3), dtype=np.float32)
    rewards = rng.standard_normal((4, 5), dtype=np.float32)

    def play(members):
        state = policy.initial_state(rows[members], [np.random.default_rng(m) for m in members], {})
        steps = zip(observations[:, members], rewards[:, members], strict=True)
        return np.array([policy.act(rows[members], seen, reward, state, {}) for seen, reward in steps])

    together = play([0, 1, 2, 3, 4])
    assert np.isfinite(together).all()
    for member in range(5):
        assert np.array_equal(play([member])[:, 0], together[:, member])
    rewards[0] += 1
    assert np.array_equal(play([0, 1, 2, 3, 4]), together) == (modulation == "none")


def test_rewards_that_are_not_finite_reach_the_output():
    policy = Hebbian((3,), 2, (4,), modulation="reward", eligibility=True)
    row = policy.initial_params(np.random.default_rng(0))
    found, _, _ = play_episode(policy, row, np.ones((3, 3), np.float32), rewards=np.array([np.nan, 0, 0], np.float32))
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize(
    ("options", "count"),
    [({"modulation": "reward"}, 2), ({"eligibility": True}, 3), ({"modulation": "reward", "eligibility": True}, 5)],
)
@pytest.mark.parametrize(("distribution", "largest"), [("normal", 6), ("uniform", 1)])
def test_searched_parameters_start_as_coefficients_do(options, count, distribution, largest):
    plain, policy = (Hebbian((28,), 8, distribution=distribution, **given) for given in ({}, options))
    params = np.array([policy.initial_params(np.random.default_rng(seed))[61_440:] for seed in range(100)])
    assert params.shape == (100, count)
    assert 0.4 < params.std() < 1.2
    assert np.abs(params).max() <= largest
    begin = plain.initial_params(np.random.default_rng(0))
    assert np.array_equal(policy.initial_params(np.random.default_rng(0))[:61_440], begin)


def test_refuses_bad_options():
    with pytest.raises(ValueError, match="modulation"):
        convert_reference_coefficients(Hebbian((2,), 2, modulation="reward"), np.zeros((12, 5)), np.zeros(2))
