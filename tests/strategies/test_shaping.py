import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hebbes.strategies.core.shaping import (
    SHAPINGS,
    ShapingSettings,
    assign_by_rank,
    centered_rank,
    centered_rank_normalized,
    linear,
    nes_utilities,
    raw,
    top_k,
    z_score,
)

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


def test_nes_utilities_by_hand():
    # n = 4: ln 3 - ln rank = ln 3, ln 1.5, 0 for ranks 1, 2, 3 and below 0 for 4
    best, second = np.log(3.0), np.log(1.5)
    expected = np.array([0.0, best, second, 0.0]) / (best + second) - 0.25
    assert nes_utilities(np.array([NAN, 9.0, 2.0, -5.0])) == pytest.approx(expected)
    tied = (best + second) / 2 / (best + second) - 0.25
    assert nes_utilities(np.array([1.0, 2.0, 2.0, 0.0])) == pytest.approx([-0.25, tied, tied, -0.25])


def test_top_k_by_hand():
    assert top_k(np.array([5.0, 1.0, 3.0, NAN]), 0.5) == pytest.approx([0.25, -0.25, 0.25, -0.25])
    assert top_k(np.array([5.0, 3.0, 3.0, 3.0]), 0.5) == pytest.approx([0.25, -1 / 12, -1 / 12, -1 / 12])
    assert top_k(np.arange(5.0), 0.99) == pytest.approx([-0.2, 0.05, 0.05, 0.05, 0.05])
    assert top_k(np.arange(5.0), 0.01) == pytest.approx([-0.2, -0.2, -0.2, -0.2, 0.8])
    fitness = np.arange(10.0)
    assert np.array_equal(ShapingSettings("top_k", 0.2).shape(fitness), top_k(fitness, 0.2))
    assert np.array_equal(ShapingSettings("linear", 0.2).shape(fitness), linear(fitness))


def test_failed_members_count_as_the_worst_value():
    fitness = np.array([NAN, 2.0, -4.0, 8.0])
    assert raw(fitness).tolist() == [-4.0, 2.0, -4.0, 8.0]
    assert linear(fitness) == pytest.approx([-0.5, 0.0, -0.5, 0.5])
    assert z_score(fitness) == pytest.approx(np.array([-4.5, 1.5, -4.5, 7.5]) / np.sqrt(99 / 3))


@given(fitness=arrays(np.float64, st.integers(2, 30), elements=st.integers(-1000, 1000)))
def test_z_scores_are_those_of_torch(fitness):
    rewards = torch.tensor(fitness)
    expected = (rewards - rewards.mean()) / rewards.std() if rewards.std() > 0 else torch.zeros(len(fitness))
    assert z_score(fitness) == pytest.approx(expected.numpy(), abs=1e-9)


def test_the_z_score_of_a_single_member_is_zero():
    assert z_score(np.array([7.0])).tolist() == [0.0]
    assert z_score(np.array([NAN])).tolist() == [0.0]


@pytest.mark.parametrize("shaped", [linear, z_score])
def test_a_range_wider_than_a_float_does_not_overflow(shaped):
    assert np.array_equal(shaped(np.array([-1.5e308, 1.5e308])), shaped(np.array([-1.0, 1.0])))


@pytest.mark.parametrize("value", [0.1, 1 / 3, -7e300])
def test_rounding_makes_no_deviation_of_ties(value):
    for name in ("z_score", "linear"):
        assert not SHAPINGS[name](np.full(6, value)).any()


def test_values_by_rank_go_to_the_best_first_and_ties_share_them():
    assert assign_by_rank(np.array([2.0, NAN, 7.0, 2.0]), np.array([8.0, 4.0, 2.0, 1.0])).tolist() == [
        3.0,
        1.0,
        8.0,
        3.0,
    ]


each_shaping = pytest.mark.parametrize("name", SHAPINGS)


@each_shaping
@pytest.mark.parametrize("value", [0.0, -3.5, NAN])
def test_a_population_that_ties_or_fails_as_a_whole_moves_nothing(name, value):
    utilities = SHAPINGS[name](np.full(6, value))
    if name == "raw" and not np.isnan(value):
        assert utilities.tolist() == [value] * 6  # cancels within antithetic pairs
    else:
        assert not utilities.any()


@each_shaping
@given(fitness=FITNESS)
def test_utilities_are_finite_and_ordered_as_the_fitness(name, fitness):
    before = fitness.copy()
    utilities = SHAPINGS[name](fitness)
    assert np.array_equal(fitness, before, equal_nan=True)
    assert np.isfinite(utilities).all()
    ordered = np.where(np.isnan(fitness), -np.inf, fitness)
    better = ordered[:, None] > ordered
    assert (utilities[:, None] - utilities)[better].min(initial=1.0) > -1e-12
    assert np.allclose((utilities[:, None] - utilities)[ordered[:, None] == ordered], 0)
    if name.startswith("centered_rank"):
        assert (utilities[:, None] - utilities)[better].min(initial=1.0) > 0
    if name not in ("raw", "linear"):
        assert abs(utilities.sum()) < 1e-9


@each_shaping
@given(fitness=FITNESS, rng=st.randoms(use_true_random=False))
def test_members_may_come_in_any_order(name, fitness, rng):
    order = list(range(len(fitness)))
    rng.shuffle(order)
    assert SHAPINGS[name](fitness[order]) == pytest.approx(SHAPINGS[name](fitness)[order], abs=1e-9)


@each_shaping
@given(fitness=arrays(np.float64, st.integers(2, 30), elements=st.integers(-1000, 1000)), shift=st.integers(-999, 999))
def test_an_offset_of_all_members_changes_only_raw(name, fitness, shift):
    moved = SHAPINGS[name](fitness + shift) - (shift if name == "raw" else 0)
    assert moved == pytest.approx(SHAPINGS[name](fitness), abs=1e-9)
