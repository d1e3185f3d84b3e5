"""Curves over runs: common points, averages with intervals, performance profiles."""

import numpy as np
import pytest

from hebbes.statistics.curves import MAX_POINTS, RunCurve, average_runs, compute_profile, interpolate_runs
from hebbes.statistics.intervals import summarize


def make_runs(*curves):
    return [RunCurve(np.array(x, np.float64), np.array(y, np.float64)) for x, y in curves]


def test_runs_are_interpolated_only_where_all_have_values():
    points, values = interpolate_runs(make_runs(([0, 10, 20], [0, 10, 0]), ([5, 15], [1, 3])))
    assert points.tolist() == [5, 10, 15]
    assert values.tolist() == [[5, 10, 5], [1, 2, 3]]


def test_equal_points_are_left_as_they_are():
    points, values = interpolate_runs(make_runs(([1, 3, 7], [4, 5, 6]), ([1, 3, 7], [7, 8, 9])))
    assert (points.tolist(), values.tolist()) == ([1, 3, 7], [[4, 5, 6], [7, 8, 9]])


def test_many_points_are_thinned_out_within_the_same_range():
    x = np.arange(1000.0)
    points, values = interpolate_runs(make_runs((x, x), (x + 0.5, x)))
    assert (len(points), points[0], points[-1]) == (MAX_POINTS, 0.5, 999)
    assert values[0] == pytest.approx(points) and values[1] == pytest.approx(points - 0.5)


def test_a_single_run_is_drawn_as_it_is():
    x = np.arange(1000.0)
    curve = average_runs(make_runs((x, -x)), "iqm")
    assert (curve.x.tolist(), curve.value.tolist()) == (x.tolist(), (-x).tolist())
    assert np.isnan(curve.low).all() and np.isnan(curve.high).all()


def test_runs_without_a_common_range_are_refused():
    with pytest.raises(ValueError, match="no range in common: one begins at 5, and another ends at 2"):
        interpolate_runs(make_runs(([0, 2], [0, 0]), ([5, 9], [0, 0])))


@pytest.mark.parametrize("statistic", ["iqm", "mean"])
def test_each_point_is_an_average_of_runs_with_its_interval(statistic):
    values = np.random.default_rng(0).normal(size=(8, 3))
    curve = average_runs(make_runs(*((range(3), row) for row in values)), statistic)
    for point in range(3):
        expected = getattr(summarize(values[:, point]), statistic)
        assert curve.value[point] == pytest.approx(expected.value)
        assert (curve.low[point], curve.high[point]) == pytest.approx((expected.low, expected.high), abs=0.05)


def test_a_profile_is_the_share_of_scores_above_each_threshold():
    curve = compute_profile(np.array([1.0, 2, 2, 4]), np.array([0.0, 1, 2, 3, 4]))
    assert curve.value.tolist() == [1, 0.75, 0.25, 0.25, 0]
    assert (curve.low[0], curve.high[0], curve.high[-1]) == (1, 1, 0)
    assert curve.low[1] < 0.75 < curve.high[1]
