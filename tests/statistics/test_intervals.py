"""Evaluation statistics, checked with numbers computed by hand, by theory or by rliable."""

import json
from math import isnan, nan, sqrt

import numpy as np
import pytest
from scipy.stats import bootstrap, trim_mean

from hebbes.statistics.intervals import Estimate, compute_iqm, make_json_number, make_json_summary, summarize
from tests.shape_checks import unchecked

TEN = np.array([1.0, 2, 4, 9, 3, 10, 7, 8, 8, 30])


def make_row(*returns):
    return np.array([returns], np.float64)


def get_bounds(estimate):
    return estimate.low, estimate.high


def test_statistics_of_four_returns_by_hand():
    summary = summarize(make_row(1, 2, 4, 9))
    assert (summary.mean.value, summary.median.value, summary.iqm.value) == (4, 3, 3)  # IQM: of 2 and 4
    assert (summary.minimum, summary.maximum) == (1, 9)
    assert summary.std == pytest.approx(sqrt(38 / 3))  # squared deviations 9 + 4 + 0 + 25, over n - 1
    assert (summary.failed, summary.units) == (0, 4)


@pytest.mark.parametrize(("count", "expected"), [(12, 199 / 6), (13, 40)])
def test_interquartile_mean_of_squares(count, expected):
    # aggregate_iqm of rliable 1.2.0 gives 33.1667 and 40; by hand: 3 units are cut from either end
    assert summarize(np.arange(count)[np.newaxis] ** 2.0).iqm.value == pytest.approx(expected)


@pytest.mark.parametrize("number", range(1, 10))
def test_the_interquartile_mean_has_the_bits_of_scipy(number):
    values = np.random.default_rng(0).normal(size=(50, number))
    values[::7, 0] = nan
    np.testing.assert_array_equal(compute_iqm(values), trim_mean(values, 0.25, axis=1))


def test_intervals_of_ten_units_are_those_of_scipy():
    summary = summarize(TEN)
    assert (summary.mean.value, summary.iqm.value, summary.median.value) == (8.2, 6.5, 7.5)
    averages = {"mean": np.mean, "iqm": lambda drawn, axis: trim_mean(drawn, 0.25, axis), "median": np.median}
    for name, compute in averages.items():
        exact = bootstrap((TEN,), compute, n_resamples=200_000, batch=10_000, method="percentile", rng=0)
        expected = exact.confidence_interval
        # statistics of ten units are discrete: a neighboring value (0.1 for mean, 1/6 for IQM) is the same quantile
        assert get_bounds(getattr(summary, name)) == pytest.approx((expected.low, expected.high), abs=0.17)


@pytest.mark.parametrize("shape", [(60,), (1, 60), (3, 20), (60, 1)])
def test_the_interval_depends_on_the_episodes_and_not_on_their_seeds(shape):
    returns = np.random.default_rng(4).normal(size=60)
    summary = summarize(returns.reshape(shape))
    half = 1.96 * returns.std() / sqrt(60)
    assert get_bounds(summary.mean) == pytest.approx((returns.mean() - half, returns.mean() + half), abs=0.1 * half)
    assert (summary.mean, summary.iqm, summary.std) == (summarize(returns).mean, summarize(returns).iqm, summary.std)


def test_interval_of_a_large_normal_sample_is_1_96_standard_errors_wide():
    returns = np.random.default_rng(1).normal(100, 10, size=(1, 2000))
    summary = summarize(returns)
    half = 1.96 * summary.std / sqrt(2000)
    expected = (summary.mean.value - half, summary.mean.value + half)
    assert get_bounds(summary.mean) == pytest.approx(expected, abs=0.05 * half)


def test_interval_of_two_returns_is_their_range():
    # A quarter of all resamples are (0, 0) and a quarter (1, 1), far more than 2.5 % at either end.
    assert get_bounds(summarize(make_row(0, 1)).mean) == (0, 1)


@pytest.mark.parametrize("count", [2, 50])
def test_equal_returns_have_no_spread(count):
    summary = summarize(np.full((1, count), 500.0))
    assert summary.mean == summary.iqm == summary.median == Estimate(500, 500, 500)
    assert summary.std == 0


def test_the_spread_of_one_return_is_unknown():
    summary = summarize(make_row(500))
    assert all(isnan(value) for value in (summary.std, *get_bounds(summary.mean), *get_bounds(summary.iqm)))
    assert str(summary) == "mean 500, IQM 500, median 500, std -, min 500, max 500 over 1 episode"
    assert make_json_summary(summary)["mean_ci"] == [None, None]


def test_same_returns_same_intervals():
    returns = np.random.default_rng(2).normal(size=(2, 30))
    assert summarize(returns) == summarize(returns.copy())


@pytest.mark.parametrize("bad", [nan, np.inf])
def test_a_failed_episode_makes_every_statistic_nan_and_is_counted(bad):
    summary = summarize(make_row(1, bad, 3, bad))
    assert summary.failed == 2
    assert isnan(summary.mean.value)
    assert isnan(summary.maximum)
    assert str(summary) == "2 of 4 episodes failed"
    found = json.loads(json.dumps(make_json_summary(summary), allow_nan=False))
    assert all(value in (None, [None, None]) for value in found.values())


def test_json_and_text_of_two_returns():
    summary = summarize(make_row(1, 3))
    assert make_json_summary(summary) == {
        **{"mean": 2, "mean_ci": [1, 3], "iqm": 2, "iqm_ci": [1, 3], "median": 2, "median_ci": [1, 3]},
        **{"std": sqrt(2), "min": 1, "max": 3},
    }
    assert str(summary) == (
        "mean 2.00 [1.00, 3.00], IQM 2.00 [1.00, 3.00], median 2.00 [1.00, 3.00], "
        "std 1.41, min 1.00, max 3.00 over 2 episodes"
    )
    assert make_json_number(nan) is None


@unchecked()
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_returns_are_refused(shape):
    with pytest.raises(ValueError, match="at least one unit"):
        summarize(np.zeros(shape))
