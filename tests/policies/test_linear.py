import numpy as np
import pytest
import torch

from hebbes.policies.linear import Linear
from hebbes.policies.torch_modules import as_module
from tests.shape_checks import unchecked


def test_by_hand():
    policy = Linear((3,), 2, bias=True)
    weights = np.array([[1, 2, 3, 4, 5, 6, 10, 20]], np.float32)
    outputs = policy.act(weights, np.array([[1.0, 0.0, -1.0]]), np.zeros(1, np.float32), None, {})
    assert outputs.tolist() == [[8, 18]]


def test_the_search_starts_at_zero():
    params = Linear((3, 2), 4).initial_params(np.random.default_rng(0))
    assert params.tolist() == [0] * 24


def test_the_module_takes_observations_that_are_single_numbers():
    module = as_module(Linear((), 2), np.array([3, 4], np.float32), {})
    assert module(torch.tensor([0.5, -1.0])).tolist() == [[1.5, 2], [-3, -4]]
    assert module(torch.zeros(0)).shape == (0, 2)


@unchecked()
@pytest.mark.parametrize("row", [np.zeros(3, np.float32), np.zeros(2), np.zeros((1, 2), np.float32)])
def test_a_row_that_is_not_the_policys_makes_no_module(row):
    with pytest.raises(ValueError, match=r"as_module: the row must be float32 of shape \(2,\), got "):
        as_module(Linear((), 2), row, {})
