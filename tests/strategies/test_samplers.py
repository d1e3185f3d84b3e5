import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hebbes.strategies.core.populations import GaussianPopulation
from hebbes.strategies.core.samplers import MIRRORED_SAMPLERS, ORTHOGONAL_BLOCK, SAMPLERS, check_members

each_sampler = pytest.mark.parametrize("sampler", SAMPLERS)


def make_population(sampler, population_size=80, num_params=50, sigma=1.0, generation=4):
    return GaussianPopulation(np.zeros(num_params, np.float32), sigma, 3, generation, population_size, sampler)


def draw_noise(sampler, **sizes):
    population = make_population(sampler, **sizes)
    return population.weights(range(population.population_size)).astype(np.float64)


@each_sampler
@settings(max_examples=20)
@given(ids=st.lists(st.integers(0, 80), max_size=12), smaller=st.sampled_from([2, 40, 80]))
def test_any_members_in_any_order_of_a_population_of_any_size_are_the_same(sampler, ids, smaller):
    whole = make_population(sampler).weights(range(81))
    assert np.array_equal(make_population(sampler).weights(ids), whole[ids])
    assert np.array_equal(make_population(sampler, population_size=smaller).weights(range(smaller)), whole[:smaller])


@each_sampler
def test_the_last_member_is_the_center_and_the_others_differ_within_and_between_generations(sampler):
    assert not make_population(sampler).weights([80]).any()
    rows = np.concatenate([draw_noise(sampler), draw_noise(sampler, generation=5)])
    assert len({row.tobytes() for row in rows}) == 160


@each_sampler
def test_noise_is_standard_normal(sampler):
    rows = np.concatenate([draw_noise(sampler, population_size=200, generation=g) for g in range(20)])[
        :: 1 + (sampler != "normal")
    ]
    assert np.abs(rows.mean(axis=0)).max() < 5 / np.sqrt(len(rows))
    assert np.abs(rows.var(axis=0) - 1).max() < 6 * np.sqrt(2 / len(rows))
    lengths = np.square(rows).sum(axis=1)  # chi-square with 50 degrees of freedom
    assert lengths.mean() == pytest.approx(50, rel=0.02)
    assert lengths.var() == pytest.approx(100, rel=0.15)
    assert np.mean(rows**4) == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize("sampler", MIRRORED_SAMPLERS)
def test_pairs_are_antithetic(sampler):
    rows = draw_noise(sampler)
    assert np.array_equal(rows[0::2], -rows[1::2])


def test_without_antithetic_pairs_no_two_members_are_related():
    rows = draw_noise("normal", num_params=1000)
    cosines = rows @ rows.T / 1000
    assert np.abs(cosines - np.diag(np.diag(cosines))).max() < 0.2


@pytest.mark.parametrize(("num_params", "block"), [(50, ORTHOGONAL_BLOCK), (7, 7), (1, 1)])
def test_directions_are_orthogonal_within_blocks_and_only_there(num_params, block):
    rows = draw_noise("orthogonal", population_size=160, num_params=num_params)[::2]
    units = rows / np.linalg.norm(rows, axis=1)[:, None]
    cosines = units @ units.T
    same = np.arange(80)[:, None] // block == np.arange(80) // block
    assert np.abs(cosines - np.eye(80))[same].max() < 1e-6
    assert np.abs(cosines[~same]).mean() > 0.05


def test_orthogonal_directions_estimate_a_linear_gradient_better_than_independent_ones():
    slope = np.random.default_rng(0).normal(size=32)

    def measure_error(sampler):
        errors = []
        for generation in range(20):
            rows = draw_noise(sampler, population_size=64, num_params=32, generation=generation)
            errors.append(np.linalg.norm(rows.T @ (rows @ slope) / 64 - slope))
        return np.mean(errors)

    assert measure_error("orthogonal") < 0.5 * measure_error("antithetic")


@pytest.mark.parametrize(
    ("sampler", "number", "allowed"),
    [("antithetic", 7, "an even number >= 2"), ("orthogonal", 0, "an even number >= 2"), ("normal", 1, ">= 2")],
)
def test_a_number_of_members_that_cannot_be_made_is_refused(sampler, number, allowed):
    with pytest.raises(ValueError, match=f"population_size must be {allowed}.* got {number}"):
        check_members("population_size", number, sampler)
    check_members("population_size", 7, "normal")
