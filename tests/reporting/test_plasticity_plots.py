import numpy as np
import pytest

from hebbes.evaluation.weight_recording import WeightRecording
from hebbes.reporting.figure import write_figure
from hebbes.reporting.plasticity_plots import (
    make_coefficients_figure,
    make_returns_figure,
    make_weights_figure,
    project_on_principal_components,
)
from hebbes.statistics.intervals import Estimate


def test_principal_components_find_the_plane_and_its_share_of_variance():
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ellipse = np.zeros((40, 5))
    ellipse[:, 3], ellipse[:, 1] = 2 * np.cos(angles), np.sin(angles)
    (one, other), shares = project_on_principal_components([ellipse[:10] + 7, ellipse[10:] + 7])
    assert (one.shape, other.shape) == ((10, 2), (30, 2))
    assert np.abs(np.concatenate([one, other])) == pytest.approx(np.abs(ellipse[:, [3, 1]]), abs=1e-9)
    assert shares == pytest.approx([0.8, 0.2])  # 2^2 / (2^2 + 1)


@pytest.mark.parametrize("trajectory", [np.ones((1, 3)), np.ones((4, 1)), np.zeros((4, 3))])
def test_episodes_without_variance_are_drawn_too(trajectory, tmp_path):
    (projected,), shares = project_on_principal_components([trajectory])
    assert np.allclose(projected, 0) and not shares.any()
    updated_at = np.arange(1, len(trajectory))
    recording = WeightRecording([trajectory.astype(np.float32)], updated_at, np.zeros((len(updated_at), 1)))
    write_figure(make_weights_figure("nothing", [recording], [1]), tmp_path / "a.png")
    write_figure(make_coefficients_figure("nothing", {"A": np.zeros(3)}), tmp_path / "b.png")
    assert (tmp_path / "a.png").stat().st_size and (tmp_path / "b.png").stat().st_size


def find_line(axes, label):
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return line.get_xdata(), line.get_ydata()


def test_the_layers_asked_for_are_drawn_each_in_its_own_axes():
    ramp = np.arange(4, dtype=np.float32)
    layers = [np.outer(ramp, [0, step]).astype(np.float32) for step in (1, 10, 100)]
    changes = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
    others, updated_at = [layer + 1 for layer in layers], np.array([4, 8, 12])
    recordings = [WeightRecording(layers, updated_at, changes), WeightRecording(others, updated_at, 99 * changes)]
    first, third, changing = make_weights_figure("a.dat", recordings, [1, 3]).axes
    for axes, number, step in ((first, 1, 1), (third, 3, 100)):
        assert axes.get_title() == f"weights of layer {number}"
        along, across = find_line(axes, "episode 2")
        assert np.hypot(np.diff(along), np.diff(across)) == pytest.approx([step] * 3, rel=1e-5)
        circles, squares = ([line for line in axes.lines if line.get_marker() == mark] for mark in "os")
        assert [line.get_xdata()[0] for line in circles] == [find_line(axes, f"episode {k}")[0][0] for k in (1, 2)]
        assert [line.get_xdata()[0] for line in squares] == [find_line(axes, f"episode {k}")[0][-1] for k in (1, 2)]
        assert axes.get_xlabel().startswith("PC 1, ") and axes.get_ylabel().startswith("PC 2, ")
    assert [line.get_label() for line in changing.lines] == ["layer 1", "layer 3"]
    for layer, values in (("layer 1", [1, 4, 7]), ("layer 3", [3, 6, 9])):
        env_steps, drawn = find_line(changing, layer)
        assert (list(env_steps), list(drawn)) == ([4, 8, 12], values)
    assert (changing.get_yscale(), changing.get_xlabel()) == ("log", "env step")


def test_each_coefficient_has_a_histogram_of_its_own_on_the_same_scale():
    figure = make_coefficients_figure("Ant-v5: a.dat", {"A": np.array([0.0, 0, 1]), "learning_rate": np.array([2.0])})
    assert {axes.get_title(): axes.patches[0].get_xy()[:, 1].max() for axes in figure.axes} == {
        "A": 2,
        "learning_rate": 1,
    }
    (limits,) = {axes.get_xlim() for axes in figure.axes}
    assert limits[0] <= 0 and limits[1] >= 2
    assert figure.get_suptitle() == "Ant-v5: a.dat"


def test_returns_stand_over_their_morphologies_filled_if_seen():
    rows = {
        "static": {"none": (Estimate(5, 4, 7), True), "left": (Estimate(1, 0, 3), False)},
        "plastic": {"left": (Estimate(3, 2.5, 3.5), True)},
    }
    (axes,) = make_returns_figure("Ant-v5", ["none", "left"], rows).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["none", "left"]
    assert list(axes.get_xticks()) == [0, 1]
    assert [list(find_line(axes, name)[1]) for name in rows] == [[5, 1], [3]]
    points = [container.lines[0] for container in axes.containers]
    drawn = [(round(point.get_xdata()[0]), point.get_ydata()[0]) for point in points]
    assert drawn == [(0, 5), (1, 1), (1, 3)]
    assert [point.get_markerfacecolor() != "white" for point in points] == [True, False, True]
    spans = [container.lines[2][0].get_segments()[0][:, 1].tolist() for container in axes.containers]
    assert spans == [[4, 7], [0, 3], [2.5, 3.5]]
