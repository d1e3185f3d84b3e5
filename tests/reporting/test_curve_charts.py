"""Curves on a page: lines end where a run has no value, and each column of the metrics has one place."""

import json
from unittest.mock import Mock

import numpy as np

from hebbes.programs.reports.curve_sections import GROUPS, SCORE, X
from hebbes.programs.reports.plasticity_sections import _draw_changes
from hebbes.recording.metrics import METRICS
from hebbes.reporting.page.curve_charts import Line, make_curves_chart
from hebbes.statistics.curves import Curve, RunCurve


def draw(curve, max_points=500):
    """The points of the chart of a curve."""
    lines, labels = [Line("openai_es", {"run": curve})], ("env steps", "gradient_agreement")
    chart = make_curves_chart("", "", labels, lines, max_points=max_points)
    return list(zip(chart.data["points"]["x"], chart.data["points"]["y"], strict=True))


def test_a_line_is_interrupted_where_rows_have_no_value():
    x, gaps = np.array([2.0, 3.0, 6.0, 8.0]), np.array([1.0, 4.0, 5.0, 7.0, 9.0])
    assert draw(RunCurve(x, x / 10, gaps)) == [(2, 0.2), (3, 0.3), (6, None), (6, 0.6), (8, None), (8, 0.8)]
    assert draw(RunCurve(x, x / 10)) == [(2, 0.2), (3, 0.3), (6, 0.6), (8, 0.8)]


def test_a_line_with_few_of_its_points_is_interrupted_too():
    x = np.arange(100.0)
    drawn = draw(RunCurve(x[x != 50], np.ones(99), np.array([50.0])), max_points=4)
    assert [y for _, y in drawn] == [1, 1, None, 1, 1]


def test_the_table_has_the_averages_or_else_the_runs():
    runs = {"short": RunCurve(np.array([0.0, 10.0]), np.array([1.0, 2.0]))}
    average = Curve(np.array([5.0]), np.array([1.5]), np.array([1.0]), np.array([2.0]))
    for lines, header, row in (
        ([Line("cem", runs)], "run", ("short", "cem", "10.0", "1.00", "2.00", "1.00", "2.00")),
        ([Line("cem", runs, average), Line("ars", runs)], "", ("cem", "5.00", "1.50", "1.00", "2.00")),
    ):
        table = make_curves_chart("", "", ("env steps", "return"), lines, max_points=9).table
        assert (table.header[0], table.rows) == (header, [row])


def test_averages_of_single_runs_have_no_layer_for_intervals():  # Vega warns of layers without data
    for low, count in ((0.5, 3), (np.nan, 2)):
        average = Curve(np.array([5.0]), np.array([1.5]), np.array([low]), np.array([low + 2]))
        chart = make_curves_chart("", "", ("env steps", "return"), [Line("cem", average=average)], max_points=9)
        assert len(chart.spec["layer"]) == count


def test_every_column_of_the_metrics_has_one_place():
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(set(grouped)) == len(grouped)
    assert {*grouped, X, SCORE, "generation", "episode", "individual"} == set(METRICS)


def test_updates_that_change_no_weight_are_gaps_on_a_logarithmic_scale():
    changes = np.array([[1.0, 0.0], [0.0, 0.0], [0.5, 0.0]])
    (chart,) = _draw_changes([Mock(changes=changes, updated_at=np.arange(3))])
    assert chart.data["points"] | {"low": [], "high": []} == {
        **{"line": ["layer 1"] * 3, "run": ["episode 1"] * 3, "low": [], "high": []},
        **{"x": [0, 2, 2], "y": [1.0, None, 0.5]},
    }
    assert '"type": "log"' in json.dumps(chart.spec)
    assert [row[-2:] for row in chart.table.rows] == [("0.50", "1.00")]
    assert not list(_draw_changes([Mock(changes=np.zeros((3, 2)), updated_at=np.arange(3))]))
