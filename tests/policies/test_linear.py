import numpy as np

from hebbes.policies.linear import Linear


def test_by_hand():
    policy = Linear((3,), 2, bias=True)
    weights = np.array([[1, 2, 3, 4, 5, 6, 10, 20]], np.float32)
    outputs = policy.act(weights, np.array([[1.0, 0.0, -1.0]]), np.zeros(1, np.float32), None, {})
    assert outputs.tolist() == [[8, 18]]


def test_the_search_starts_at_zero():
    params = Linear((3, 2), 4).initial_params(np.random.default_rng(0))
    assert params.tolist() == [0] * 24
