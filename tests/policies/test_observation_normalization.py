import numpy as np
import pytest

from hebbes.policies.observation_normalization import normalize_observations

STATISTICS = {
    "observation_mean": np.array([[1, 0, 0], [0, 0, -4]], np.float32),
    "observation_std": np.array([[2, 1, 1], [1, 1, 0.5]], np.float32),
}


def test_statistics_scale_and_clip():
    observations = np.array([[[3, 100, -100], [-0.5, 0, -6]]], np.float64)
    outputs = normalize_observations(observations, STATISTICS)
    assert outputs.dtype == np.float32
    assert outputs.tolist() == [[[1, 10, -10], [-0.5, 0, -4]]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int64, np.bool_])
def test_without_statistics_only_the_type_changes(dtype):
    observations = np.array([[0, 1], [200, 255]]).astype(dtype)
    outputs = normalize_observations(observations, {})
    assert outputs.dtype == np.float32
    assert outputs.tolist() == observations.astype(float).tolist()
    assert not np.shares_memory(outputs, observations)


@pytest.mark.parametrize("buffers", [{}, STATISTICS], ids=["plain", "statistics"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_infinity_becomes_nan(buffers, dtype):
    observations = np.array([[[1, np.inf, 2], [-np.inf, 3, np.nan]]], dtype)
    expected = [[[False, True, False], [True, False, True]]]
    assert np.isnan(normalize_observations(observations, buffers)).tolist() == expected
    assert np.isfinite(normalize_observations(observations, buffers)).tolist() == (~np.array(expected)).tolist()


def test_accepts_a_single_number_per_member():
    assert normalize_observations(np.array([2.0, 3.0]), {}).tolist() == [2, 3]


def test_refuses_statistics_of_another_shape():
    with pytest.raises(ValueError, match=r"shapes \(2, 3\), \(2, 3\), expected \(6,\)"):
        normalize_observations(np.zeros((1, 6)), STATISTICS)
