"""Evaluation statistics against numbers worked out by hand or by theory."""

import json
from math import isnan, nan, sqrt

import numpy as np
import pytest

from training.statistics import as_json, json_number, summary


def rng():
    return np.random.default_rng(0)


def test_figures_of_four_returns_by_hand():
    figures = summary(np.array([1.0, 2.0, 4.0, 9.0]), rng())
    assert (figures.mean, figures.median, figures.minimum, figures.maximum) == (4.0, 3.0, 1.0, 9.0)
    assert figures.std == pytest.approx(sqrt(38 / 3))  # squared deviations 9 + 4 + 0 + 25, over n - 1
    assert figures.failed == 0


def test_interval_of_a_large_normal_sample_is_1_96_standard_errors_wide():
    returns = np.random.default_rng(1).normal(100.0, 10.0, size=2000)
    figures = summary(returns, rng())
    half = 1.96 * figures.std / sqrt(2000)
    assert figures.ci_low == pytest.approx(figures.mean - half, abs=0.05 * half)
    assert figures.ci_high == pytest.approx(figures.mean + half, abs=0.05 * half)


def test_interval_of_two_returns_is_their_range():
    # A quarter of all resamples are (0, 0) and a quarter (1, 1), far more than 2.5 % at either end.
    figures = summary(np.array([0.0, 1.0]), rng())
    assert (figures.ci_low, figures.ci_high) == (0.0, 1.0)


@pytest.mark.parametrize("count", [1, 2, 50])
def test_equal_returns_have_no_spread(count):
    figures = summary(np.full(count, 500.0), rng())
    assert (figures.mean, figures.std, figures.ci_low, figures.ci_high) == (500.0, 0.0, 500.0, 500.0)


def test_same_generator_same_interval():
    returns = np.random.default_rng(2).normal(size=30)
    assert summary(returns, rng()) == summary(returns, rng())
    assert summary(returns, rng()).ci_low != summary(returns, np.random.default_rng(9)).ci_low


@pytest.mark.parametrize("bad", [nan, np.inf])
def test_a_failed_episode_spoils_every_figure_and_is_counted(bad):
    figures = summary(np.array([1.0, bad, 3.0, bad]), rng())
    assert figures.failed == 2
    assert isnan(figures.mean)
    assert isnan(figures.maximum)
    assert set(json.loads(json.dumps(as_json(figures), allow_nan=False)).values()) == {None}


def test_json_has_the_promised_keys_and_values():
    figures = as_json(summary(np.array([1.0, 3.0]), rng()))
    assert figures == {
        "mean": 2.0,
        "std": sqrt(2),
        "median": 2.0,
        "min": 1.0,
        "max": 3.0,
        "ci_low": 1.0,
        "ci_high": 3.0,
    }
    assert json_number(nan) is None


@pytest.mark.parametrize("shape", [(0,), (2, 2)])
def test_anything_but_one_row_of_returns_is_refused(shape):
    with pytest.raises(ValueError, match="one row of at least one episode"):
        summary(np.zeros(shape), rng())
