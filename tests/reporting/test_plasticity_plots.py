import numpy as np
import pytest

from reporting.plasticity_plots import Life, plot_plasticity, principal_components


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
