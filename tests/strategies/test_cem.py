import numpy as np
import pytest

from hebbes.strategies.cem import CEM, CEMSettings
from tests.strategies.every_strategy import run_generations, sphere, tell_fitness

START = np.random.default_rng(1).normal(size=5).astype(np.float32)
FITNESS = np.array([1.0, 4.0, 2.0, 0.0, -3.0, 3.0])  # best first: members 1, 5, 2
NAN = float("nan")


def make_cem(**settings):
    return CEM(CEMSettings(**{"population_size": 6, "sigma": 0.2, **settings}), START, seed=0)


def test_textbook_cem_is_the_elites_mean_and_deviation():
    strategy = make_cem(elite_weights="equal", variance_around="new")
    noise, _ = tell_fitness(strategy, FITNESS)
    elite = START + 0.2 * noise[[1, 5, 2]]
    assert strategy.mean == pytest.approx(elite.mean(axis=0), abs=1e-6)
    assert strategy.state_dict()["sigma"] == pytest.approx(elite.std(axis=0), rel=1e-4)


def test_two_generations_of_cem_rls_update_by_hand():
    strategy = make_cem(extra_variance=0.01, extra_variance_decay=0.5, extra_variance_min=0.006)
    sigma = np.full(5, 0.2)
    weights = np.log(4 / np.array([1.0, 2.0, 3.0]))
    weights /= weights.sum()
    for generation, extra in enumerate((0.01, 0.006)):
        mean = strategy.mean.astype(np.float64)
        noise, _ = tell_fitness(strategy, FITNESS, generation)
        elite = mean + sigma * noise[[1, 5, 2]]
        sigma = np.sqrt(weights @ (elite - mean) ** 2 + extra)
        assert strategy.mean == pytest.approx(weights @ elite, abs=1e-6)
        assert strategy.state_dict()["sigma"] == pytest.approx(sigma, rel=1e-4)


def test_three_generations_of_cem_rls_code_by_hand():
    strategy = make_cem(
        divide_variance=True,
        extra_variance=0.95 * 1e-3 + 0.05 * 1e-5,
        extra_variance_schedule="asymptotic",
        extra_variance_min=1e-5,
    )
    sigma, damp = np.full(5, 0.2), 1e-3
    weights = np.log(4 / np.array([1.0, 2.0, 3.0]))
    weights /= weights.sum()
    for generation in range(3):
        mean = strategy.mean.astype(np.float64)
        noise, _ = tell_fitness(strategy, FITNESS, generation)
        elite = mean + sigma * noise[[1, 5, 2]]
        damp = 0.95 * damp + 0.05 * 1e-5  # moves before its first use
        sigma = np.sqrt(weights @ (elite - mean) ** 2 / 3 + damp)
        assert strategy.mean == pytest.approx(weights @ elite, abs=1e-6)
        assert strategy.state_dict()["sigma"] == pytest.approx(sigma, rel=1e-4)


def test_ties_at_the_elites_edge_share_its_weights():
    strategy = make_cem(elite_weights="equal")
    noise, _ = tell_fitness(strategy, np.array([1.0, 4.0, 3.0, 0.0, -3.0, 3.0]))
    assert strategy.mean == pytest.approx(START + 0.2 * noise[[1, 2, 5]].mean(axis=0), abs=1e-6)
    strategy = make_cem(elite_weights="equal")
    noise, _ = tell_fitness(strategy, np.array([1.0, 4.0, 1.0, 0.0, -3.0, 1.0]))
    assert strategy.mean == pytest.approx(START + 0.2 * np.array([2, 3, 2, 2]) / 9 @ noise[[0, 1, 2, 5]], abs=1e-6)


def test_failed_members_have_no_weight_even_where_the_elite_is_not_full():
    strategy = make_cem(elite_weights="equal")
    noise, _ = tell_fitness(strategy, np.array([NAN, 4.0, NAN, NAN, NAN, 3.0]))
    assert strategy.mean == pytest.approx(START + 0.2 * noise[[1, 5]].mean(axis=0), abs=1e-6)


@pytest.mark.parametrize("variance_around", ["old", "new"])
def test_a_single_survivor_moves_the_mean_alone(variance_around):
    strategy = make_cem(variance_around=variance_around)
    noise, _ = tell_fitness(strategy, np.array([NAN, 4.0, NAN, NAN, NAN, NAN]))
    assert strategy.mean == pytest.approx(START + 0.2 * noise[1], abs=1e-6)
    assert strategy.state_dict()["sigma"].tolist() == [0.2] * 5


def test_extra_variance_keeps_the_search_alive():
    alive, collapsed = (make_cem(population_size=20, extra_variance=v, extra_variance_min=v) for v in (1e-4, 0.0))
    for strategy in (alive, collapsed):
        run_generations(strategy, 30)
    assert alive.state_dict()["sigma"].min() >= 0.01
    assert collapsed.state_dict()["sigma"].max() < 0.001


@pytest.mark.parametrize("settings", [{}, {"elite_weights": "equal", "variance_around": "new", "sigma": 1.0}])
def test_climbs_a_sphere(settings):
    strategy = make_cem(population_size=60, **settings)
    run_generations(strategy, 12)
    assert sphere(strategy.mean[None])[0] > sphere(START[None])[0] / 100


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"elite_share": 0.2}, "elite_share must select at least 2 of the 6 members, got 0.2"),
        (
            {"elite_share": 0.99, "elite_weights": "equal"},
            "elite_share must select fewer than all 6 members with elite_weights equal, got 0.99",
        ),
    ],
)
def test_refuses_what_it_cannot_use(settings, message):
    with pytest.raises(ValueError, match=message):
        make_cem(**settings)


def test_the_elite_is_a_share_of_the_population_as_it_has_grown():
    strategy = make_cem(elite_weights="equal", elite_share=0.5)
    fitness = np.random.default_rng(0).normal(size=20)
    noise, _ = tell_fitness(strategy, fitness)
    best = np.argsort(fitness)[-10:]
    assert strategy.mean == pytest.approx(START + 0.2 * noise[best].mean(axis=0), abs=1e-6)


def test_the_extra_variance_falls_also_where_all_members_tie():
    strategy, values = make_cem(extra_variance=0.4, extra_variance_decay=0.5), []
    for generation in range(3):
        values.append(strategy._extra_variance.value)
        tell_fitness(strategy, np.zeros(6), generation)
    assert values == [0.4, 0.2, 0.1]
