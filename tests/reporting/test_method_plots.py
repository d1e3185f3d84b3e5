"""Figures of methods, and what all figures have in common."""

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest

from hebbes.reporting.figure import COLORS, get_line_style, make_figure, write_figure
from hebbes.reporting.method_plots import make_curves_figure, make_profiles_figure
from hebbes.statistics.curves import RunCurve


def make_run(*values):
    return RunCurve(np.arange(float(len(values))), np.array(values, np.float64))


def make_curves(methods, title="Ant-v5", note="a note"):
    return make_curves_figure(title, note, ("env steps", "eval_return"), methods, "iqm")


def test_each_method_has_its_average_and_a_thin_line_for_each_run():
    figure = make_curves({"cem": [make_run(1, 2), make_run(3, 6)], "ars": [make_run(5, 5)]})
    (axes,) = figure.axes
    drawn = [(line.get_color(), line.get_ydata().tolist(), line.get_linewidth() < 1) for line in axes.lines]
    assert drawn == [
        (COLORS[0], [1, 2], True),
        (COLORS[0], [3, 6], True),
        (COLORS[0], [2, 4], False),
        (COLORS[1], [5, 5], False),  # a single run is no thin line too
    ]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["cem (2 runs)", "ars (1 run)"]
    assert (axes.get_xlabel(), axes.get_ylabel(), figure.get_suptitle()) == ("env steps", "eval_return", "Ant-v5")
    assert axes.get_title().endswith("thin: each run; a note")


def test_more_methods_of_one_point_than_colors_have_other_markers():
    methods = {str(number): [make_run(number)] for number in range(2 * len(COLORS))}
    (axes,) = make_curves(methods).axes
    drawn = {(points.get_color(), points.get_marker()) for points, _, _ in axes.containers}
    assert len(drawn) == len(methods)


def test_the_legend_lies_below_the_data():
    figure = make_curves({f"openai_es sigma=0.{number}": [make_run(1, 2)] for number in range(1, 9)})
    figure.canvas.draw()
    legend, axes = figure.legends[0].get_window_extent(), figure.axes[0].get_window_extent()
    assert legend.y0 >= 0 and legend.y1 < axes.y0


@pytest.mark.filterwarnings("error")
def test_a_figure_grows_with_its_legend():
    figures = {}
    for count in (2, 40):
        names = [f"openai_es sigma=0.1 learning_rate=0.05 weight_decay=0.01 trial={number}" for number in range(count)]
        figures[count] = make_curves({name: [make_run(1, 2)] for name in names})
        figures[count].canvas.draw()
    few, many = (figure.axes[0].get_window_extent() for figure in figures.values())
    assert many.height == pytest.approx(few.height, rel=0.2)
    assert figures[40].legends[0].get_window_extent().y0 >= 0


def test_runs_without_a_common_range_are_named_by_their_method():
    late = RunCurve(np.array([5.0, 6.0]), np.zeros(2))
    with pytest.raises(ValueError, match=r"^cem: the runs have no range in common"):
        make_curves({"cem": [make_run(1, 2), late]})


@pytest.mark.parametrize(("end", "label"), [(2e6, "2M"), (1.0, "1.0")])
def test_large_numbers_are_short_and_small_ones_no_thousandths(end, label):
    figure = make_curves({"cem": [RunCurve(np.array([0, end]), np.zeros(2))]})
    figure.canvas.draw()
    labels = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert label in labels and not any(each.endswith("m") for each in labels)


def test_single_points_are_visible(tmp_path):
    write_figure(make_curves({"cem": [make_run(1), make_run(3)]}), tmp_path / "a.png")
    picture = mpl.image.imread(tmp_path / "a.png")
    assert np.isclose(picture, mpl.colors.to_rgba(COLORS[0]), atol=1 / 255).all(axis=2).sum() > 100


def test_a_profile_falls_from_one_to_zero():
    (axes,) = make_profiles_figure("Ant-v5", "", "score", {"cem": np.array([1.0, 3.0]), "ars": np.array([2.0])}).axes
    for line, middle in zip(axes.lines, (0.5, 1.0), strict=True):
        shares = line.get_ydata()
        assert (shares[0], np.interp(1.9, line.get_xdata(), shares), shares[-1]) == (1, middle, 0)


def test_styles_do_not_repeat_before_all_colors_have_had_all_lines():
    styles = [tuple(get_line_style(number).values()) for number in range(28)]
    assert len(set(styles)) == 28 and get_line_style(28) == get_line_style(0)


def test_names_are_no_markup(tmp_path, recwarn):
    label = "openai_es wrappers=$a_{$ <b>"
    write_figure(make_curves({label: [make_run(1, 2)]}, title="$x_{$", note="$y_{$"), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    assert [str(each.message) for each in recwarn] == []


def test_the_ground_is_white_on_any_page(tmp_path):
    write_figure(make_figure(1, 1), tmp_path / "a.png")
    assert (mpl.image.imread(tmp_path / "a.png") == 1).all()  # opaque, too
