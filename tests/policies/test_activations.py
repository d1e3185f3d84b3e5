import numpy as np
import pytest
import torch

from hebbes.policies.activations import ACTIVATIONS, apply_activation, compute_tanh, sigmoid
from tests.shape_checks import unchecked


@pytest.mark.parametrize(("name", "atol"), [("tanh", 0), ("selu", 5e-7), ("relu", 0)])
def test_against_torch_in_float64(name, atol):
    small = np.geomspace(1e-30, 1, 301)
    x = np.concatenate([np.linspace(-100, 100, 20_001), np.linspace(-1, 1, 1001), small, -small, [-1e30, 1e30, 0]])
    values = x.astype(np.float32)[np.newaxis]
    expected = getattr(torch, name)(torch.from_numpy(values.astype(np.float64))).numpy()
    apply_activation(name, values)
    np.testing.assert_allclose(values, expected, rtol=5e-7, atol=atol)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_nan_stays_nan_in_its_row_only(name):
    values = np.full((3, 21), np.nan, np.float32)
    values[1] = -np.inf
    apply_activation(name, values)
    assert np.isnan(values[[0, 2]]).all()
    assert np.isfinite(values[1]).all()


@pytest.mark.parametrize("compute, reference", [(compute_tanh, np.tanh), (sigmoid, lambda x: 1 / (1 + np.exp(-x)))])
def test_functions_that_return_new_arrays(compute, reference):
    x = np.linspace(-20, 20, 4 * 37, dtype=np.float32).reshape(4, 37)
    gates, before = np.split(x, [10], axis=1)[1], x.copy()
    np.testing.assert_allclose(compute(gates), reference(gates.astype(np.float64)), rtol=0, atol=4e-7)
    assert np.array_equal(x, before)


@unchecked()
def test_what_a_kernel_cannot_take_is_refused():
    for values in (np.ones((2, 4), np.float32)[:, ::2], np.ones((2, 2))):
        with pytest.raises(ValueError, match="relu: values must be contiguous float32, got"):
            apply_activation("relu", values)


def test_no_members_at_all():
    assert sigmoid(np.ones((0, 3), np.float32)).shape == (0, 3)
