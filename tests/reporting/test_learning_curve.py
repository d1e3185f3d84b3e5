"""The learning curve: its lines and points match the metrics, and no display is needed."""

from math import nan

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from hebbes.recording.metrics import MetricsWriter
from hebbes.reporting import learning_curve as plot

pytestmark = pytest.mark.usefixtures("drawn_curves")


def write_metrics(path, evaluations):
    with MetricsWriter(path) as writer:
        for index, score in enumerate(evaluations):
            writer.write(
                {
                    "generation": index + 1,
                    "env_steps": 100 * (index + 1),
                    "return_mean": 10.0 + index,
                    "return_min": 0.0,
                    "return_max": 20.0,
                    "mean_policy_return": 12.0 + index,
                    "eval_return": score,
                }
            )


def test_lines_and_best_evaluation_match_the_metrics(tmp_path):
    write_metrics(tmp_path / "metrics.csv", [nan, 15.0, nan, 14.0])
    axes = Figure().add_subplot()
    plot._draw_returns(axes, plot.read_metrics(tmp_path / "metrics.csv"))
    lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["population, mean"], [[100, 10], [200, 11], [300, 12], [400, 13]])
    np.testing.assert_array_equal(lines["mean policy"][-1], [400, 15])
    np.testing.assert_array_equal(lines["best evaluation, 15.0"], [[200, 15]])
    (band,) = axes.collections
    assert band.get_label() == "population, min to max"
    assert band.get_paths()[0].get_extents().extents.tolist() == [100, 0, 400, 20]


def test_a_single_generation_is_a_visible_point(tmp_path):
    write_metrics(tmp_path / "metrics.csv", [nan])
    axes = Figure().add_subplot()
    plot._draw_returns(axes, plot.read_metrics(tmp_path / "metrics.csv"))
    assert [(line.get_label(), line.get_marker()) for line in axes.get_lines()] == [
        ("population, mean", "o"),
        ("mean policy", "o"),
    ]


@pytest.mark.parametrize("evaluations", [[3.0], [nan, nan], [1.0, 2.0, nan]])
def test_any_number_of_rows_makes_a_png(tmp_path, monkeypatch, evaluations):
    monkeypatch.delenv("DISPLAY", raising=False)
    write_metrics(tmp_path / "metrics.csv", evaluations)
    plot.plot_learning_curve(tmp_path, tmp_path / "curve.png", "CartPole-v1: run")
    picture = mpl.image.imread(tmp_path / "curve.png", "CartPole-v1: run")
    assert picture.shape == (660, 960, 4)
    mean_line = mpl.colors.to_rgba(plot._POPULATION)
    assert np.isclose(picture, mean_line, atol=1 / 255).all(axis=2).sum() > 50
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.png", "metrics.csv"]


def test_metrics_without_a_generation_are_refused(tmp_path):
    (tmp_path / "metrics.csv").write_text("generation,env_steps\n")
    with pytest.raises(ValueError, match="has no rows yet"):
        plot.plot_learning_curve(tmp_path, tmp_path / "curve.png", "CartPole-v1: run")


@pytest.mark.parametrize("name", ["走る", "🤖", "a$b_{$", "שלום é", "\ue000"])
def test_a_run_of_any_name_has_its_curve_and_no_warning(name, tmp_path, recwarn, caplog):
    (tmp_path / name).mkdir()
    write_metrics(tmp_path / name / "metrics.csv", [3.0])
    plot.plot_learning_curve(tmp_path / name, tmp_path / name / "curve.png", f"CartPole-v1: {name}")
    assert mpl.image.imread(tmp_path / name / "curve.png").shape == (660, 960, 4)
    assert [str(each.message) for each in recwarn] == [] and caplog.text == ""


def test_a_run_without_a_finite_return_has_a_curve_and_no_warning(tmp_path, recwarn):
    (tmp_path / "metrics.csv").write_text("individual,env_steps,return,eval_return\n1,10,nan,nan\n")
    plot.plot_learning_curve(tmp_path, tmp_path / "curve.png", "Pendulum-v1: run")
    assert [str(each.message) for each in recwarn] == []
