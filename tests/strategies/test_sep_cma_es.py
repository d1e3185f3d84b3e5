import numpy as np
import pytest
from cmaes import SepCMA

from hebbes.strategies.core.adaptive import AdaptiveSettings
from hebbes.strategies.sep_cma_es import SepCMAES, compute_learning_rates
from tests.strategies.every_strategy import make_members, make_results

START = np.random.default_rng(2).normal(size=12).astype(np.float32)


def ellipsoid(rows):
    return -(np.square(rows.astype(np.float64)) * np.logspace(0, 3, rows.shape[1])).sum(axis=1)


def test_equals_the_library_run_directly_bit_for_bit():
    ours = SepCMAES(AdaptiveSettings(sigma=0.5), START, seed=3)
    library = SepCMA(START.astype(np.float64), 0.5)
    library._cc, library._c1, library._cmu = compute_learning_rates(12, library._mu_eff)
    for generation in range(30):
        population = ours.ask(generation)
        rows = make_members(population)
        fitness = ellipsoid(rows)
        library.tell([(row.astype(np.float64), -value) for row, value in zip(rows[:-1], fitness[:-1], strict=True)])
        ours.tell(population, make_results(population, fitness))
    state = ours.state_dict()
    assert np.array_equal(state["mean"], library.mean) and np.array_equal(state["variances"], library._C)
    assert state["sigma"] == library._sigma != 0.5


def test_one_step_of_mean_and_spread_by_hand():
    ours = SepCMAES(AdaptiveSettings(population_size=6, sigma=0.5), START, seed=3)
    population = ours.ask(0)
    rows = make_members(population).astype(np.float64)
    ours.tell(population, make_results(population, np.array([3.0, np.nan, 5.0, 1.0, 4.0, 0.0, 99.0])))
    weights = np.log(4) - np.log([1, 2, 3])  # ln(mu + 1) - ln(rank), mu = 3
    assert ours.mean == pytest.approx(weights @ rows[[2, 4, 0]] / weights.sum(), abs=1e-6)


def test_the_members_follow_the_variances():
    ours = SepCMAES(AdaptiveSettings(population_size=200, sigma=0.5), np.zeros(50, np.float32), seed=3)
    state = ours.state_dict()
    state["variances"] = np.linspace(0.1, 4, 50) ** 2
    ours.load_state_dict(state)
    assert make_members(ours.ask(0))[:-1].std(axis=0) == pytest.approx(0.5 * np.linspace(0.1, 4, 50), rel=0.25)


def test_variances_are_learned_at_the_rates_of_pycma():
    # what pycma 4.5.0 prints of itself for 20 dimensions, a population of 12 and its mu_eff, 3.7294589
    assert compute_learning_rates(20, 3.7294589) == pytest.approx((0.252594, 0.0343279, 0.0565385), rel=1e-5)


@pytest.mark.parametrize("population_size", [4, 5, 8, 500])
def test_variances_stay_positive_in_a_population_of_any_size(population_size):
    ours = SepCMAES(AdaptiveSettings(population_size=population_size), START, seed=0)
    for generation in range(5):
        population = ours.ask(generation)
        ours.tell(population, make_results(population, ellipsoid(make_members(population))))
    assert (ours.state_dict()["variances"] > 0).all()


def test_refuses_a_single_parameter():
    with pytest.raises(ValueError, match="at least 2 parameters"):
        SepCMAES(AdaptiveSettings(population_size=8), START[:1], seed=0)
