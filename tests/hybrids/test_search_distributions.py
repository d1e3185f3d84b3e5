from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hebbes.hybrids.acem_rl import ACEM
from hebbes.hybrids.aes_rl import AES, AESSettings
from hebbes.hybrids.mean_rules import MEAN_RULES
from hebbes.hybrids.one_plus_one_rl import OnePlusOneDistribution
from hebbes.hybrids.search_distribution import SearchSettings
from hebbes.hybrids.variance_rules import MIN_VARIANCE, VARIANCE_RULES

START = np.random.default_rng(1).normal(size=10).astype(np.float32)
NAN = float("nan")
SCALES = {"fixed_linear": 0.03, "fixed_sigmoid": 0.03, "baseline_absolute": -4.4, "baseline_relative": 0.03}
MAKERS = {
    **{f"{rule} {variance}":
       (AES, partial(AESSettings, mean_rule=rule, variance_rule=variance, mean_scale=SCALES[rule]))
       for rule, variance in product(MEAN_RULES, VARIANCE_RULES)},
    "acem": (ACEM, SearchSettings),
    "one_plus_one": (OnePlusOneDistribution, SearchSettings),
}  # fmt: skip
each_distribution = pytest.mark.parametrize("name", MAKERS)


def make_distribution(name, seed=0, start=START, initial_variance=0.1):
    found, make_settings = MAKERS[name]
    return found(make_settings(initial_variance=initial_variance), start, seed)


def make_aes(start, **settings):
    return AES(AESSettings(**{"mean_scale": 40.0, "initial_variance": 0.5, **settings}), np.float32(start), seed=0)


def sphere(row):
    return -float(np.square(row.astype(np.float64)).sum())


def search_sphere(distribution, numbers):
    for number in numbers:
        individual = distribution.sample(number)
        metrics = distribution.tell(individual, sphere(individual), sphere(distribution.mean))
    return metrics


def assert_same_state(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name], equal_nan=True), name


def test_a_sample_is_the_mean_plus_noise_that_follows_from_seed_and_number():
    distribution = make_distribution("acem")
    first, second = distribution.sample(3), distribution.sample(4)
    assert np.array_equal(first, make_distribution("one_plus_one").sample(3))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, make_distribution("acem", seed=1).sample(3))
    noise = np.concatenate([distribution.sample(number) - START for number in range(1000)])
    assert np.var(noise) == pytest.approx(0.1, rel=0.05)
    assert np.mean(noise) == pytest.approx(0, abs=0.01)


def test_one_individual_moves_aes_by_hand():
    aes = make_aes([1.0, 0.0], variance_rule="fixed")
    metrics = aes.tell(np.float32([3.0, 0.0]), 120.0, 100.0)  # p = (20 + 40) / (20 + 80)
    assert metrics["mean_share"] == pytest.approx(0.6)
    assert metrics["update_norm"] == pytest.approx(1.2)
    assert metrics["sigma"] == pytest.approx(np.sqrt(0.5))
    state = aes.state_dict()
    assert state["mean"] == pytest.approx([0.4 * 1 + 0.6 * 3, 0.0])
    assert state["variance"] == pytest.approx([0.5 + (2.0 * 0.8 - 0.5) / 10, 0.45])
    metrics = aes.tell(np.float32([0.0, 5.0]), 120.0, 100.0)  # each weight moves in units of its own sigma
    move = 0.6 * np.array([0.0 - 2.2, 5.0 - 0.0]) / np.sqrt(state["variance"])
    assert metrics["update_over_sigma"] == pytest.approx(np.sqrt(np.square(move).mean()))


def test_the_move_is_measured_in_a_distribution_that_changes_its_mean_in_place():
    class InPlace(AES):
        def _update(self, individual, fitness, mean_fitness):
            self._mean += individual - self._mean
            return {"mean_share": 1.0}

    distribution = InPlace(AESSettings(mean_scale=40.0), np.float32([1.0, 0.0]), seed=0)
    assert distribution.tell(np.float32([3.0, 0.0]), 1.0, 0.0)["update_norm"] == 2.0


def test_the_variance_rules_by_hand():
    aes = make_aes([1.0], variance_rule="adaptive")
    aes.tell(np.float32([3.0]), 80.0, 100.0)  # p = 1 / 3, n = 2
    assert aes.state_dict()["mean"] == pytest.approx([5 / 3])
    assert aes.state_dict()["variance"] == pytest.approx([0.5 + (2.0 * 4 / 3 - 0.5) / 2])
    aes = make_aes([1.0], mean_rule="fixed_linear", variance_rule="fixed", variance_window=4)
    aes.tell(np.float32([3.0]), 110.0, 100.0)  # p = 1 / 4
    assert aes.state_dict()["variance"] == pytest.approx([0.5 + (2.0 * 1.5 - 0.5) / 4])


def test_the_variance_waits_for_shares_that_count():
    aes = make_aes([1.0], mean_rule="fixed_linear")
    aes.tell(np.float32([3.0]), 100.039, 100.0)  # p = 0.000975
    assert aes.state_dict()["mean"] > 1.0
    assert aes.state_dict()["variance"].tolist() == [0.5]


def test_a_negative_share_moves_the_mean_away():
    aes = make_aes([1.0], mean_rule="fixed_linear", negative_ratio=0.5)
    aes.tell(np.float32([3.0]), 80.0, 100.0)  # p = -0.5 * 0.5
    assert aes.state_dict()["mean"] == pytest.approx([0.5])
    assert aes.state_dict()["variance"].tolist() == [0.5]


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("acem", "one_plus_one")])
@given(returns=st.lists(st.floats(-100, 100) | st.just(NAN), min_size=1, max_size=20), f_mu=st.floats(-100, 100))
def test_aes_stays_between_mean_and_individual_with_a_positive_variance(name, returns, f_mu):
    aes = make_distribution(name)
    for number, fitness in enumerate(returns):
        before, individual = aes.state_dict()["mean"], aes.sample(number)
        aes.tell(individual, fitness, f_mu)
        after, margin = aes.state_dict()["mean"], 1e-12
        assert (after >= np.minimum(before, individual) - margin).all()
        assert (after <= np.maximum(before, individual) + margin).all()
        assert (aes.state_dict()["variance"] >= MIN_VARIANCE).all()


@each_distribution
def test_an_individual_that_failed_moves_nothing_whatever_its_weights(name):
    distribution = make_distribution(name)
    for number in range(25):
        distribution.tell(np.full(10, NAN, np.float32), NAN, 0.0 if number % 2 else NAN)
    assert np.array_equal(distribution.mean, START)
    search_sphere(distribution, range(25))
    assert np.isfinite(distribution.state_dict()["mean"]).all()
    assert not np.array_equal(distribution.mean, START)


def test_acem_by_hand():
    acem = ACEM(SearchSettings(initial_variance=0.5), np.float32([1.0]), seed=0)
    told = np.arange(1.0, 12.0)
    returns = [1.0, 10.0, 2.0, 9.0, 3.0, 8.0, 4.0, 7.0, 5.0, 6.0, 11.0]
    for individual, fitness in zip(told[:9], returns[:9], strict=True):
        acem.tell(np.float32([individual]), fitness, 0.0)
    assert (acem.mean, acem.state_dict()["variance"], acem.state_dict()["extra_variance"]) == (1.0, 0.5, 1e-3)
    weights = np.log(6 / np.arange(1.0, 6.0))
    weights /= weights.sum()
    mean, extra = 1.0, 1e-3
    # the best five of the first ten, and then, without the first, of the ten from the second on
    for number, best in ((9, [2.0, 4.0, 6.0, 8.0, 10.0]), (10, [11.0, 2.0, 4.0, 6.0, 8.0])):
        acem.tell(np.float32([told[number]]), returns[number], 0.0)
        extra = 0.9**0.1 * extra + (1 - 0.9**0.1) * 1e-5
        variance = weights @ (np.array(best) - mean) ** 2 / 5 + extra
        mean += 0.1 * (weights @ best - mean)
        assert acem.state_dict()["mean"] == pytest.approx([mean])
        assert acem.state_dict()["variance"] == pytest.approx([variance])
        assert acem.state_dict()["extra_variance"] == pytest.approx(extra)


def test_a_ring_in_which_all_tie_moves_nothing_and_one_survivor_the_mean_alone():
    acem = make_distribution("acem")
    for number in range(12):
        acem.tell(acem.sample(number), 7.0, 0.0)
    assert np.array_equal(acem.mean, START)
    acem, survivor = make_distribution("acem"), START + 1
    for number in range(10):
        acem.tell(survivor if number == 4 else acem.sample(number), 7.0 if number == 4 else NAN, 0.0)
    assert acem.mean == pytest.approx(START + 0.1, abs=1e-6)
    assert np.array_equal(acem.state_dict()["variance"], np.full(10, 0.1))


@pytest.mark.parametrize(
    ("fitness", "mean_fitness", "accepted"),
    [(2.0, 1.0, True), (1.0, 1.0, False), (1.0, 2.0, False), (NAN, 1.0, False), (1.0, NAN, True), (NAN, NAN, False)],
)
def test_one_plus_one_accepts_what_is_strictly_better(fitness, mean_fitness, accepted):
    distribution = make_distribution("one_plus_one")
    individual = distribution.sample(0)
    distribution.tell(individual, fitness, mean_fitness)
    assert np.array_equal(distribution.mean, individual if accepted else START)


def test_the_window_of_one_plus_one_slides():
    distribution = make_distribution("one_plus_one")
    expected, rates = 0.1, []
    for number, succeeds in enumerate([1, 1, 1, *[0] * 9]):
        rates.append(distribution.tell(distribution.sample(number), float(succeeds), 0.5)["success_rate"])
        if number >= 9:
            expected = expected / 0.99 if number == 9 else expected * 0.99  # 3 of 10, then 2 and 1 of 10
        assert distribution.state_dict()["variance"] == pytest.approx(np.full(10, expected))
    assert np.isnan(rates[:9]).all()
    assert rates[9:] == pytest.approx([0.3, 0.2, 0.1])


def test_the_variance_of_one_plus_one_has_a_floor():
    distribution = make_distribution("one_plus_one", initial_variance=MIN_VARIANCE)
    for number in range(20):
        distribution.tell(distribution.sample(number), 0.0, 1.0)
    assert distribution.state_dict()["variance"].tolist() == [MIN_VARIANCE] * 10


@each_distribution
def test_minimizes_a_sphere_the_same_way_each_time(name):
    first, second = make_distribution(name), make_distribution(name)
    metrics = [search_sphere(each, range(1000)) for each in (first, second)]
    assert_same_state(first.state_dict(), second.state_dict())
    assert metrics[0] == metrics[1]
    assert sphere(START) < -4.4  # the scale of baseline_absolute lies just above
    goals = {"one_plus_one": -0.01, "baseline_absolute fixed": -3.5, "baseline_absolute adaptive": -4.0}
    assert sphere(first.mean) > (goals.get(name) or (-0.1 if name.endswith("fixed") else -3.0))


@each_distribution
def test_a_restored_search_continues_with_the_same_bits(name):
    whole, restored = make_distribution(name), make_distribution(name, start=np.zeros(10, np.float32))
    search_sphere(whole, range(17))
    saved = {key: np.array(array) for key, array in whole.state_dict().items()}
    returned = whole.state_dict()
    search_sphere(whole, range(17, 40))
    assert_same_state(returned, saved)
    restored.load_state_dict(saved)
    search_sphere(restored, range(17, 40))
    assert_same_state(restored.state_dict(), whole.state_dict())


def test_refuses_the_state_of_another_and_settings_without_a_meaning():
    with pytest.raises(ValueError, match="successes not expected"):
        make_distribution("acem").load_state_dict(make_distribution("one_plus_one").state_dict())
    with pytest.raises(KeyError, match="individuals"):
        make_distribution("acem").load_state_dict(make_aes(START).state_dict())
    with pytest.raises(ValueError, match="mean_scale must be given with mean_rule baseline_relative"):
        AESSettings()
    with pytest.raises(ValueError, match="mean_scale must be < 0 with mean_rule baseline_absolute"):
        AESSettings(mean_rule="baseline_absolute", mean_scale=2000.0)


def test_a_search_that_diverges_ends():
    aes = make_aes([1.0], mean_rule="fixed_linear")
    aes.tell(np.float32([1e31]), 200.0, 100.0)
    with pytest.raises(FloatingPointError, match="the search diverges"):
        aes.sample(1)
