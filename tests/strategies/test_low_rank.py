import pickle

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from hebbes.contracts.policy import Layout
from hebbes.contracts.strategy import TakesLayout
from hebbes.policies.layers import make_rows
from hebbes.policies.mean_squares import compute_mean_squares
from hebbes.strategies.core.low_rank import LowRankPopulation
from hebbes.strategies.core.populations import GaussianPopulation
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from tests.strategies.every_strategy import make_results

LAYOUT = Layout({"kernel": (2, 1, 3, 3), "matrix": (5, 4), "offset": (5,), "last": (2, 5)})
CENTER = np.linspace(-1, 1, LAYOUT.num_params, dtype=np.float32)
POPSIZE = 6


def make_population(**changes):
    described = {"center": CENTER, "sigma": 0.5, "seed": 3, "generation": 4, "population_size": POPSIZE}
    return LowRankPopulation(**{**described, "layout": LAYOUT, "rank": 2, **changes})


def make_member_rows(members, ids=None):
    weights = members.weights(range(len(members)) if ids is None else ids)
    return make_rows(weights, weights.layout)


def sum_noise(members, utilities, power=1):
    return members.weighted_noise_sums(range(len(members)), utilities[np.newaxis], [power])[0]


def test_pairs_are_antithetic_around_the_center_and_the_last_member_is_the_center():
    found = make_member_rows(make_population())
    assert found.dtype == np.float32
    assert found[0:6:2] + found[1:6:2] == pytest.approx(np.tile(2 * CENTER, (3, 1)), abs=1e-6)
    assert np.array_equal(found[6], CENTER)
    assert len({row.tobytes() for row in found}) == 7


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_noise_of_a_matrix_has_the_rank_asked_for_and_that_of_other_arrays_is_full(rank):
    layout = Layout({"matrix": (9, 7), "kernel": (9, 7, 1, 1)})
    wide = make_population(center=np.zeros(126, np.float32), layout=layout, rank=rank)
    first = make_member_rows(wide, [0])
    ranks = [np.linalg.matrix_rank(layout.view(first, name).reshape(9, 7), tol=1e-5) for name in layout.shapes]
    assert ranks == [rank, 7]


@pytest.mark.parametrize("rank", [1, 4])
def test_the_noise_has_unit_variance_and_no_correlation(rank):
    layout = Layout({"matrix": (3, 2), "offset": (2,)})
    many = make_population(center=np.zeros(8, np.float32), layout=layout, rank=rank, population_size=20_000)
    noise = make_member_rows(many, range(0, 20_000, 2)) / 0.5
    assert noise.mean(axis=0) == pytest.approx(np.zeros(8), abs=0.05)
    assert noise.T @ noise / len(noise) == pytest.approx(np.eye(8), abs=0.1)


def test_any_slice_made_anywhere_is_the_same():
    whole = make_population().weights(range(7))
    elsewhere = pickle.loads(pickle.dumps(make_population()))
    for ids in ([5], [3, 0, 6], [1, 4], range(2, 5)):
        found = elsewhere.weights(ids)
        assert np.array_equal(found.noise, whole.noise[list(ids)])
        assert np.array_equal(found.center, whole.center)
    for other in (make_population(seed=4), make_population(generation=5)):
        assert not np.array_equal(other.weights([0]).noise, whole.noise[:1])


@pytest.mark.parametrize("rank", [1, 3])
def test_the_weighted_noise_sum_is_utility_times_the_noise_of_full_size(rank):
    utilities = np.array([0.3, -0.1, 0.0, 0.25, -0.5, 0.05, 9.0])
    members = make_population(rank=rank)
    noise = (make_member_rows(members).astype(np.float64) - CENTER) / 0.5
    assert sum_noise(members, utilities) == pytest.approx(utilities @ noise, abs=2e-5)
    rows = np.stack([np.where(np.arange(7) < 3, utilities, 0.0), np.where(np.arange(7) < 3, 0.0, utilities)])
    halves = members.weighted_noise_sums(range(7), rows, (1, 1))
    assert halves.sum(axis=0) == pytest.approx(sum_noise(members, utilities), abs=1e-12)
    with pytest.raises(ValueError, match="power must be 1 for low-rank noise, got 2"):
        sum_noise(members, utilities, power=2)


def test_the_weighted_noise_sum_has_the_same_bits_on_any_number_of_blas_threads():
    layout = Layout({"matrix": (2, 2), "kernel": (30_000, 1, 1, 1)})
    wide = make_population(center=np.zeros(layout.num_params, np.float32), layout=layout, population_size=64)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(sum_noise(wide, np.linspace(-1, 1, 65)).tobytes())
    assert found[0] == found[1]


def test_mean_squares_are_those_of_the_rows():
    expected = np.square(make_member_rows(make_population()).astype(np.float64)).mean(axis=1)
    assert compute_mean_squares(make_population().weights(range(7))) == pytest.approx(expected, rel=1e-6)
    for ids in ([2], [0, 5], range(3, 7)):  # the same bits alone and among others
        found = compute_mean_squares(make_population().weights(ids))
        assert np.array_equal(found, compute_mean_squares(make_population().weights(range(7)))[list(ids)])
    dense = GaussianPopulation(CENTER, 0.5, 3, 4, POPSIZE).weights(range(7))
    assert compute_mean_squares(dense) == pytest.approx(np.square(dense.astype(np.float64)).mean(axis=1), rel=1e-6)


def make_strategy(layout=LAYOUT, seed=0, **settings):
    chosen = {"population_size": 10, "sampler": "low_rank", "weight_penalty": 0.0, **settings}
    es = OpenAIES(OpenAIESSettings(**chosen), CENTER, seed)
    assert isinstance(es, TakesLayout)
    es.take_layout(layout)
    return es


def test_the_expected_step_is_the_gradient_of_a_linear_fitness():
    slope = np.random.default_rng(0).normal(size=len(CENTER))
    members = make_strategy(population_size=8000).ask(0)
    fitness = (make_member_rows(members).astype(np.float64) - CENTER) @ slope
    estimate = sum_noise(members, np.append(fitness[:-1], 0.0)) / (8000 * 0.1)
    assert np.linalg.norm(estimate - slope) < 0.2 * np.linalg.norm(slope)  # sqrt(params / pairs) = 0.1


@pytest.mark.parametrize("penalty", [0.0, 3.0])
def test_one_step_by_hand(penalty):
    es = make_strategy(
        population_size=2, learning_rate=0.3, sigma=0.2, fitness_shaping="centered_rank", weight_penalty=penalty
    )
    first, second, _ = make_member_rows(es.ask(0)).astype(np.float64)
    heavier = np.sign((first**2).mean() - (second**2).mean())
    es.tell(es.ask(0), make_results(es.ask(0), np.array([1e-6, 0.0, 0.0])))
    best = -heavier if penalty else 1.0  # the penalty outweighs the fitness
    expected = CENTER + 0.3 / (2 * 0.2) * best * (first - CENTER) / 0.2
    assert es.mean == pytest.approx(expected, abs=1e-5)


def test_climbs_a_sphere_and_resumes_exactly():
    def generation(es, number):
        members = es.ask(number)
        es.tell(
            members, make_results(members, -np.square(make_member_rows(members) - 0.5).sum(axis=1, dtype=np.float64))
        )

    whole, first, second = (
        make_strategy(population_size=40, learning_rate=0.02, rank=1, momentum=0.3) for _ in range(3)
    )
    for number in range(100):
        generation(whole, number)
    assert np.square(whole.mean - 0.5).sum() < np.square(CENTER - 0.5).sum() / 20
    for number in range(60):
        generation(first, number)
    second.load_state_dict(first.state_dict())
    for number in range(60, 100):
        generation(second, number)
    assert np.array_equal(second.mean, whole.mean)


def test_no_layout_one_of_another_size_and_a_rank_below_one_are_refused():
    with pytest.raises(ValueError, match="sampler low_rank needs the policy's layout"):
        OpenAIES(OpenAIESSettings(sampler="low_rank"), CENTER, 0).ask(0)
    with pytest.raises(ValueError, match=r"a layout of 7 parameters for 53"):
        make_strategy(layout=Layout({"offset": (7,)}))
    with pytest.raises(ValueError, match=r"rank must be >= 1, got 0"):
        OpenAIESSettings(rank=0)
