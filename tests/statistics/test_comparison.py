"""Comparisons of two policies, checked with numbers computed by hand or by rliable."""

from math import isnan, nan

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from hebbes.statistics import comparison as module
from hebbes.statistics.comparison import compare, compare_methods
from hebbes.statistics.intervals import UNKNOWN, Estimate
from tests.shape_checks import unchecked


def compare_lists(first, second):
    return compare(np.array(first, np.float64), np.array(second, np.float64))


def test_every_pair_counts_and_ties_count_half():
    found = compare_lists([[1, 2, 3]], [[2, 2, 0]])
    assert found.probability_of_improvement.value == pytest.approx((1 + 2 + 3) / 9)
    assert found.mean_difference.value == pytest.approx(2 - 4 / 3)


def test_episodes_are_paired_whatever_their_seeds():
    found = compare_lists([[1], [5]], [[0], [3]])
    assert found.probability_of_improvement.value == 0.75  # 1 loses to 3
    assert found == compare_lists([[1, 5]], [[0, 3]])


@pytest.mark.parametrize("shape", [(40, 1), (2, 20)])
def test_intervals_do_not_depend_on_the_seeds(shape):
    first, second = np.random.default_rng(4).normal(size=(2, 40))
    expected = compare_lists([first], [second])
    assert compare_lists(first.reshape(shape), second.reshape(shape)) == expected
    difference = expected.mean_difference
    exact = 2 * 1.96 * (first - second).std() / np.sqrt(40)
    assert difference.high - difference.low == pytest.approx(exact, rel=0.1)


def test_start_states_are_drawn_for_both_files_at_once():
    returns = np.random.default_rng(1).normal(0, 100, size=(2, 20))
    difference = compare_lists(returns + 1, returns).mean_difference
    assert (difference.value, difference.low, difference.high) == pytest.approx((1, 1, 1))
    assert compare_lists(returns, returns).probability_of_improvement == Estimate(0.5, 0.5, 0.5)


def test_the_other_way_round_is_the_complement():
    first, second = np.random.default_rng(2).integers(0, 5, size=(2, 3, 10))
    one, other = compare_lists(first, second), compare_lists(second, first)
    for name, total in (("probability_of_improvement", 1), ("mean_difference", 0)):
        forth, back = getattr(one, name), getattr(other, name)
        assert forth.value + back.value == pytest.approx(total)
        assert forth.low + back.high == pytest.approx(total)
        assert forth.low < forth.value < forth.high


def test_a_resample_has_the_probability_of_mann_and_whitney(monkeypatch):
    made = []
    monkeypatch.setattr(module, "estimate_intervals", lambda compute, units: made.append(compute) or [UNKNOWN] * 2)
    first, second = np.random.default_rng(6).integers(0, 9, size=(2, 30)).astype(float)
    compare(first, second)
    drawn = np.random.default_rng(7).integers(0, 30, size=(20, 30))
    pairs = mannwhitneyu(first[drawn], second[drawn], axis=1, method="asymptotic").statistic
    np.testing.assert_array_equal(made[0](drawn)[0], pairs / 30**2)


@pytest.mark.parametrize("bad", [nan, np.inf])
def test_a_failed_episode_of_either_leaves_nothing_to_compare(bad):
    for pair in (([[1, bad]], [[1, 2]]), ([[1, 2]], [[bad, 2]])):
        found = compare_lists(*pair)
        assert isnan(found.probability_of_improvement.value)
        assert isnan(found.mean_difference.high)


@unchecked()
@pytest.mark.parametrize(("first", "second"), [([[1, 2]], [[1]]), ([[1, 2]], [1, 2]), ([[]], [[]])])
def test_returns_of_other_start_states_are_refused(first, second):
    with pytest.raises(ValueError, match="of the same start states"):
        compare_lists(first, second)


def compare_runs(first, second):
    return compare_methods(np.array(first, np.float64), np.array(second, np.float64))


def test_runs_are_paired_as_in_rliable():
    # probability_of_improvement of rliable 1.2.0, of five runs and four: every pair of means, ties count half
    first = [[[1, 3]], [[2, 2]], [[4, 4]], [[8, 10]], [[3, 3]]]
    found = compare_runs(first, [[[2, 2]], [[3, 3]], [[0, 2]], [[5, 5]]])
    wins = (1.5 + 1.5 + 3 + 4 + 2.5) / 20
    assert found.probability_of_improvement.value == pytest.approx(wins)
    assert found.mean_difference.value == pytest.approx(4 - 2.75)


def test_runs_with_the_same_returns_in_another_order_tie():
    found = compare_runs([[[0.1, 0.2, 0.3]]] * 2, [[[0.3, 0.2, 0.1]]] * 2)
    assert found.probability_of_improvement == Estimate(0.5, 0.5, 0.5)


def test_single_runs_are_compared_episode_by_episode():
    first, second = np.random.default_rng(1).normal(size=(2, 1, 2, 10))
    assert compare_runs(first, second) == compare_lists(first[0], second[0])


@pytest.mark.parametrize("swaps", [False, True])
def test_a_single_run_against_several_has_no_interval(swaps):
    one, several = np.full((1, 1, 4), 3.0), np.arange(5.0).reshape(5, 1, 1) * np.ones((5, 1, 4))
    found = compare_runs(several, one) if swaps else compare_runs(one, several)
    assert found.probability_of_improvement.value == pytest.approx(0.3 if swaps else 0.7)
    assert found.mean_difference.value == pytest.approx(-1 if swaps else 1)
    for each in (found.probability_of_improvement, found.mean_difference):
        assert isnan(each.low) and isnan(each.high)


def test_the_interval_covers_training_and_start_states():
    rng = np.random.default_rng(3)
    states, runs, others = rng.normal(0, 100, (1, 1, 40)), rng.normal(1, 5, (8, 1, 1)), rng.normal(0, 5, (6, 1, 1))
    found = compare_runs(states + runs, states + others).mean_difference  # the states cancel, because they are common
    exact = np.sqrt(runs.var() / 8 + others.var() / 6)
    assert (found.high - found.low) / (2 * 1.96 * exact) == pytest.approx(1, abs=0.1)
    apart = compare_runs(states * runs, np.zeros((6, 1, 40))).mean_difference
    assert apart.high - apart.low > 2 * 1.96 * (states * runs).mean(axis=(1, 2)).std() / np.sqrt(8) * 1.2
    by_seed = compare_runs((states * runs).reshape(8, 40, 1), np.zeros((6, 40, 1))).mean_difference
    assert by_seed == apart


def test_runs_that_always_win_have_a_probability_of_one():
    found = compare_runs(np.arange(5).reshape(5, 1, 1) + 10, np.arange(5).reshape(5, 1, 1))
    assert found.probability_of_improvement == Estimate(1, 1, 1)
    low, high = found.mean_difference.low, found.mean_difference.high
    assert low < found.mean_difference.value == 10 < high


def test_a_failed_run_leaves_nothing_to_compare():
    assert isnan(compare_runs([[[1.0]], [[nan]]], [[[1.0]]]).mean_difference.value)
