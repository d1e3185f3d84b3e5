"""Every kind of initial weights against its definition. 200 outputs and 600 inputs distinguish the two fans."""

from math import sqrt

import numpy as np
import pytest

from hebbes.policies.initial_weights import INITIAL_WEIGHTS

SHAPE = (200, 600)
BOUNDS = {
    "uni": 0.1,
    "uni_big": 1.0,
    "xa_uni": 0.3 * sqrt(6 / 800),
    "xa_uni_big": sqrt(6 / 800),
    "ka_uni": sqrt(0.6 / 600),
    "default": 1 / sqrt(600),
}


def _draw(kind, shape=SHAPE):
    return INITIAL_WEIGHTS[kind](np.random.default_rng(0), shape)


def test_there_are_ten_kinds_in_addition_to_coevolve():
    assert set(INITIAL_WEIGHTS) == set(BOUNDS) | {"normal", "sparse", "ones", "zeros"}


@pytest.mark.parametrize("kind", list(INITIAL_WEIGHTS))
def test_weights_have_the_shape_and_depend_only_on_the_generator(kind):
    first, second = _draw(kind), _draw(kind)
    assert (first.shape, first.dtype) == (SHAPE, np.float32)
    assert np.array_equal(first, second)


@pytest.mark.parametrize(("kind", "bound"), BOUNDS.items())
def test_uniform_kinds_fill_their_bounds(kind, bound):
    weights = _draw(kind)
    assert 0.9995 * bound < weights.max() <= bound * (1 + 1e-6)
    assert -0.9995 * bound > weights.min() >= -bound * (1 + 1e-6)
    assert weights.mean() == pytest.approx(0, abs=4 * bound / sqrt(3 * weights.size))
    assert weights.var() == pytest.approx(bound**2 / 3, rel=0.02)


def test_normal():
    weights = _draw("normal")
    assert weights.std() == pytest.approx(0.024, rel=0.02)
    assert (np.abs(weights) < 0.024).mean() == pytest.approx(0.6827, abs=0.006)


@pytest.mark.parametrize(("num_outputs", "zeros"), [(200, 160), (3, 3), (64, 52)])
def test_sparse_keeps_a_fifth_of_each_column_in_random_places(num_outputs, zeros):
    weights = _draw("sparse", (num_outputs, 600))
    assert ((weights == 0).sum(axis=0) == zeros).all()
    if zeros < num_outputs:
        assert weights[weights != 0].std() == pytest.approx(0.01, rel=0.05)
        assert (weights != 0).mean(axis=1) == pytest.approx(1 - zeros / num_outputs, abs=0.08)


def test_ones_and_zeros():
    assert (_draw("ones") == 1).all()
    assert (_draw("zeros") == 0).all()
