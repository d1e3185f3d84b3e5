import numpy as np
import pytest

from reporting.plasticity_plots import (
    Bar,
    Life,
    plasticity_figure,
    plot_plasticity,
    principal_components,
    returns_figure,
)  # fmt: skip


def test_principal_components_find_the_plane_and_its_share_of_variance():
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ellipse = np.zeros((40, 5))
    ellipse[:, 3], ellipse[:, 1] = 2 * np.cos(angles), np.sin(angles)
    (one, other), shares = principal_components([ellipse[:10] + 7, ellipse[10:] + 7])
    assert (one.shape, other.shape) == ((10, 2), (30, 2))
    assert np.abs(np.concatenate([one, other])) == pytest.approx(np.abs(ellipse[:, [3, 1]]), abs=1e-9)
    assert shares == pytest.approx([0.8, 0.2])  # 2^2 / (2^2 + 1)


@pytest.mark.parametrize("trajectory", [np.ones((1, 3)), np.ones((4, 1)), np.zeros((4, 3))])
def test_lives_without_variance_are_drawn_too(trajectory, tmp_path):
    (projected,), shares = principal_components([trajectory])
    assert np.allclose(projected, 0) and not shares.any()
    life = Life([trajectory.astype(np.float32)], np.zeros((len(trajectory) - 1, 1)))
    plot_plasticity(tmp_path / "a.png", "nothing", [life], {"A": np.zeros(3)}, [1])
    assert (tmp_path / "a.png").stat().st_size


def test_the_layers_asked_for_are_drawn_with_their_changes_and_coefficients():
    rng = np.random.default_rng(0)
    lives = [Life([rng.normal(size=(5, 4)) for _ in range(3)], rng.uniform(1, 2, (4, 3))) for _ in range(2)]
    coefficients = {"A": np.array([0.0, 0.0, 10.0]), "B": np.array([5.0])}
    figure = plasticity_figure("a title", lives, coefficients, [1, 3])
    *trajectories, changes, histogram = figure.axes
    assert [axes.get_title() for axes in trajectories] == ["weights of layer 1", "weights of layer 3"]
    for axes, layer in zip(trajectories, (0, 2), strict=True):
        projected, _ = principal_components([life.trajectories[layer] for life in lives])
        lines = axes.get_lines()[::3]  # each with two markers, of its start and its end
        for line, points, start, end in zip(
            lines, projected, axes.get_lines()[1::3], axes.get_lines()[2::3], strict=True
        ):
            np.testing.assert_array_equal(line.get_xydata(), points)
            np.testing.assert_array_equal(start.get_xydata(), points[:1])
            np.testing.assert_array_equal(end.get_xydata(), points[-1:])
            assert (start.get_marker(), end.get_marker()) == ("o", "s")
        assert [line.get_label() for line in lines] == ["episode 1", "episode 2"]
    drawn = {line.get_label(): line.get_xydata() for line in changes.get_lines()}
    assert list(drawn) == ["layer 1", "layer 3"]
    np.testing.assert_array_equal(drawn["layer 3"][:, 0], [1, 2, 3, 4])
    np.testing.assert_array_equal(drawn["layer 3"][:, 1], lives[0].changes[:, 2])
    heights = {patch.get_label(): patch.get_xy()[:, 1].max() for patch in histogram.patches}
    assert heights == {"A": 2, "B": 1}
    assert figure.get_suptitle() == "a title"


def test_returns_stand_over_their_body_hollow_where_it_was_not_seen():
    rows = {
        "one": {"none": Bar(4, 3, 6, True), "left": Bar(2, 1, 2.5, False)},
        "other": {"left": Bar(7, 7, 7, True)},
    }
    (axes,) = returns_figure(["none", "left"], rows).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["none", "left"]
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines() if line.get_label() in rows}
    assert [y for _, y in lines["one"]] == [4, 2]
    assert [round(x) for x, _ in lines["one"]] == [0, 1]
    assert [(round(x), y) for x, y in lines["other"]] == [(1, 7)]
    points = [container.lines[0] for container in axes.containers]
    assert [point.get_ydata().tolist() for point in points] == [[4], [2], [7]]
    assert [point.get_markerfacecolor() == "white" for point in points] == [False, True, False]
    (spread,) = axes.containers[0].lines[2]
    assert spread.get_segments()[0][:, 1].tolist() == [3, 6]
