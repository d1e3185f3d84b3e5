from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hebbes.execution.noise_sums import sum_noise_of_parts
from hebbes.strategies.ars import ARS, ARSSettings
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from tests.strategies.every_strategy import make_results, run_generations, sphere, tell_fitness

START = np.random.default_rng(1).normal(size=5).astype(np.float32)


def make_ars(**settings):
    return ARS(ARSSettings(**{"population_size": 6, "sigma": 0.2, "learning_rate": 0.3, **settings}), START, seed=0)


def measure_step(strategy, fitness):
    """The step of the mean in one generation, the noise of the members, and the metrics."""
    before = strategy.mean.astype(np.float64)
    noise, metrics = tell_fitness(strategy, np.array(fitness))
    return strategy.mean - before, noise, metrics


def test_v1_by_hand():
    step, noise, metrics = measure_step(make_ars(), [1.0, 4.0, 2.0, 0.0, -3.0, 2.0])
    sigma_r = np.std([1.0, 4.0, 2.0, 0.0, -3.0, 2.0])
    expected = 0.3 / (3 * sigma_r) * (-3.0 * noise[0] + 2.0 * noise[2] - 5.0 * noise[4])
    assert step == pytest.approx(expected, abs=1e-6)
    assert metrics["update_norm"] == pytest.approx(np.linalg.norm(expected), rel=1e-5)


def test_v1_t_uses_the_directions_with_the_best_members_and_their_deviation():
    step, noise, _ = measure_step(make_ars(top_directions=2), [1.0, 4.0, 2.0, 0.0, -9.0, 5.0])
    sigma_r = np.std([1.0, 4.0, -9.0, 5.0])
    assert step == pytest.approx(0.3 / (2 * sigma_r) * (-3.0 * noise[0] - 14.0 * noise[4]), abs=1e-6)


def test_directions_that_tie_at_the_last_place_are_all_used():
    # the best returns of the directions are 4, 2, 2: two are requested, and the third ties with the second
    step, noise, _ = measure_step(make_ars(top_directions=2), [1.0, 4.0, 2.0, 0.0, -3.0, 2.0])
    sigma_r = np.std([1.0, 4.0, 2.0, 0.0, -3.0, 2.0])
    expected = 0.3 / (3 * sigma_r) * (-3.0 * noise[0] + 2.0 * noise[2] - 5.0 * noise[4])
    assert step == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("num_best", [1, 3, 4, 7, 9, 12])
def test_the_directions_used_are_those_of_the_authors_code(num_best):
    rng = np.random.default_rng(num_best)
    for _ in range(50):
        returns = rng.integers(0, 5, 18).astype(float)  # few values, so that most of them tie
        pairs = returns.reshape(9, 2)
        best = pairs.max(axis=1)
        share = min(num_best, 9) / 9
        used = best >= np.percentile(best, 100 * (1 - share))
        step, noise, _ = measure_step(make_ars(population_size=18, top_directions=num_best), returns)
        deviation = pairs[used].std()
        gradient = (pairs[used, 0] - pairs[used, 1]) @ noise[::2][used] / used.sum()
        assert step == pytest.approx(0.3 * gradient / deviation if deviation else 0 * gradient, abs=1e-5)


@pytest.mark.parametrize("sampler", ["antithetic", "orthogonal"])
def test_with_all_directions_it_is_openai_es_on_raw_returns_over_their_deviation(sampler):
    # a, b: learning rates of OpenAI-ES and of ARS; n = 2 N: population_size; s: sigma
    # a / (n s) sum r noise = b / (N sigma_R) sum r noise for a = 2 s b / sigma_R
    fitness = np.random.default_rng(0).normal(size=6)
    settings = OpenAIESSettings(
        population_size=6,
        sampler=sampler,
        sigma=0.2,
        learning_rate=2 * 0.2 * 0.3 / fitness.std(),
        fitness_shaping="raw",
        weight_penalty=0.0,
    )
    strategies = [make_ars(sampler=sampler), OpenAIES(settings, START, seed=0)]
    for strategy in strategies:
        tell_fitness(strategy, fitness)
    assert strategies[0].mean == pytest.approx(strategies[1].mean, abs=1e-6)
    assert not np.array_equal(strategies[0].mean, START)


def test_the_scale_of_the_returns_does_not_count():
    fitness = np.random.default_rng(0).normal(size=6)
    assert measure_step(make_ars(), fitness)[0] == pytest.approx(
        measure_step(make_ars(), 1000 * fitness - 77)[0], abs=1e-6
    )


@pytest.mark.parametrize("scale", [2.0**-540, 2.0**540])
def test_the_squares_of_returns_may_over_or_underflow(scale):
    fitness = np.random.default_rng(0).normal(size=6)
    assert np.array_equal(measure_step(make_ars(), fitness)[0], measure_step(make_ars(), scale * fitness)[0])


def test_best_directions_without_a_deviation_move_nothing():
    step, _, metrics = measure_step(make_ars(top_directions=1), [5.0, 5.0, 1.0, 0.0, 0.0, 1.0])
    assert not step.any()
    assert metrics["update_norm"] == 0


def test_rounding_does_not_count_as_deviation():
    returns = np.full(10, 0.1 + 0.2)
    assert returns.std() > 0  # in float64
    strategy = make_ars(population_size=10)
    chunks = [range(0, 3), range(3, 7), range(7, 11)]  # they split pairs: noise does not cancel to the last bit
    population = strategy.ask(0)
    results = make_results(population, np.append(returns, 0.0))
    strategy.tell(population, replace(results, sum_noise=partial(sum_noise_of_parts, population, chunks)))
    assert np.array_equal(strategy.mean, START)


def test_a_population_with_fewer_directions_than_the_best_uses_those_it_has():
    full, shrunk, fewer = (
        make_ars(population_size=4),
        make_ars(population_size=8, top_directions=4),
        make_ars(population_size=4, top_directions=4),
    )
    for strategy in (full, shrunk, fewer):
        tell_fitness(strategy, np.array([1.0, 4.0, 2.0, 0.0]))
    assert np.array_equal(full.mean, shrunk.mean) and np.array_equal(full.mean, fewer.mean)


def test_schedules_are_constant_unless_asked_for():
    steady = run_generations(make_ars(), 3)
    assert (steady["learning_rate"], steady["sigma"]) == (0.3, 0.2)
    falling = make_ars(
        learning_rate_schedule="exponential",
        learning_rate_decay=0.5,
        sigma_schedule="linear",
        sigma_min=0.1,
        schedule_generations=4,
    )
    metrics = run_generations(falling, 3)
    assert (metrics["learning_rate"], metrics["sigma"]) == pytest.approx((0.075, 0.15))


def test_schedules_go_on_where_all_members_tie():
    falling = make_ars(learning_rate=0.4, learning_rate_schedule="exponential", learning_rate_decay=0.5)
    assert [tell_fitness(falling, np.zeros(6), k)[1]["learning_rate"] for k in range(3)] == [0.4, 0.2, 0.1]


def test_the_best_directions_climb_a_sphere_too():
    strategy = make_ars(population_size=32, top_directions=4, learning_rate=0.1)
    run_generations(strategy, 150)
    assert sphere(strategy.mean[None])[0] > sphere(START[None])[0] / 50
