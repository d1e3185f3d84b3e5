import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from strategies.shaping import SHAPINGS, centered_rank, centered_rank_normalized

NAN = float("nan")
FITNESS = arrays(np.float64, st.integers(2, 30), elements=st.floats(-1e6, 1e6) | st.just(NAN))


def test_ranks_span_half_below_to_half_above():
    assert centered_rank(np.array([3.0, -1.0, 10.0])).tolist() == [0.0, -0.5, 0.5]


def test_ties_share_their_mean_rank():
    assert centered_rank(np.array([1.0, 1.0, 0.0, 5.0])) == pytest.approx([0.0, 0.0, -0.5, 0.5])


def test_failed_members_rank_last_and_tie():
    assert centered_rank(np.array([NAN, -1e9, NAN, 0.0, 1.0])) == pytest.approx([-0.375, 0.0, -0.375, 0.25, 0.5])


def test_dividing_by_the_deviation_multiplies_200_untied_ranks_by_3_45():
    fitness = np.random.default_rng(0).permutation(200).astype(float)
    ratio = centered_rank_normalized(fitness) / centered_rank(fitness)
    assert ratio == pytest.approx(3.4469, abs=1e-3)


@pytest.mark.parametrize("shaping", SHAPINGS.values())
@pytest.mark.parametrize("value", [0.0, -3.5, NAN])
def test_a_population_that_ties_or_fails_as_a_whole_moves_nothing(shaping, value):
    assert shaping(np.full(6, value)).tolist() == [0.0] * 6


@pytest.mark.parametrize("shaping", SHAPINGS.values())
@given(FITNESS)
def test_utilities_are_finite_centred_and_ordered_as_the_fitness(shaping, fitness):
    before = fitness.copy()
    utilities = shaping(fitness)
    assert np.array_equal(fitness, before, equal_nan=True)
    assert np.isfinite(utilities).all()
    assert abs(utilities.sum()) < 1e-9
    ordered = np.where(np.isnan(fitness), -np.inf, fitness)
    better = ordered[:, None] > ordered
    assert (utilities[:, None] - utilities)[better].min(initial=1.0) > 0
    assert np.allclose((utilities[:, None] - utilities)[ordered[:, None] == ordered], 0)
