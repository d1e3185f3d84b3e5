import numpy as np
import pytest
import torch

from hebbes.policies.activations import ACTIVATIONS


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_against_torch_in_float64(name):
    x = np.concatenate([np.linspace(-100, 100, 20_001), np.linspace(-1, 1, 1001), [-1e30, 1e30, 0]])[np.newaxis]
    values = x.astype(np.float32)
    expected = getattr(torch, name)(torch.from_numpy(values.astype(np.float64))).numpy()
    ACTIVATIONS[name](values)
    np.testing.assert_allclose(values, expected, rtol=3e-7, atol=5e-7)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_nan_stays_nan_in_its_row_only(name):
    values = np.full((3, 21), np.nan, np.float32)
    values[1] = -np.inf
    ACTIVATIONS[name](values)
    assert np.isnan(values[[0, 2]]).all()
    assert np.isfinite(values[1]).all()
