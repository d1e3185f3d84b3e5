import numpy as np
import pytest
from searches import search, sphere, tell

from hebbes.strategies.ars import ARS, ARSSettings
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings

START = np.random.default_rng(1).normal(size=5).astype(np.float32)
NAN = float("nan")


def ars(**settings):
    return ARS(ARSSettings(**{"popsize": 6, "sigma": 0.2, "lr": 0.3, **settings}), START, seed=0)


def moved(strategy, fitness):
    """The step of one generation, and its members' noise."""
    before = strategy.mean.astype(np.float64)
    noise, figures = tell(strategy, np.array(fitness))
    return strategy.mean - before, noise, figures


def test_v1_by_hand():
    step, noise, figures = moved(ars(), [1.0, 4.0, 2.0, 0.0, -3.0, 2.0])
    sigma_r = np.std([1.0, 4.0, 2.0, 0.0, -3.0, 2.0])
    expected = 0.3 / (3 * sigma_r) * (-3.0 * noise[0] + 2.0 * noise[2] - 5.0 * noise[4])
    assert step == pytest.approx(expected, abs=1e-6)
    assert figures["update_norm"] == pytest.approx(np.linalg.norm(expected), rel=1e-5)


def test_v1_t_takes_the_directions_with_the_best_member_and_their_deviation():
    step, noise, _ = moved(ars(top_directions=2), [1.0, 4.0, 2.0, 0.0, -9.0, 5.0])
    sigma_r = np.std([1.0, 4.0, -9.0, 5.0])
    assert step == pytest.approx(0.3 / (2 * sigma_r) * (-3.0 * noise[0] - 14.0 * noise[4]), abs=1e-6)


def test_directions_that_tie_at_the_last_place_are_all_used():
    # directions of best returns 4, 2, 2: two are asked for, and the third ties with the second
    step, noise, _ = moved(ars(top_directions=2), [1.0, 4.0, 2.0, 0.0, -3.0, 2.0])
    sigma_r = np.std([1.0, 4.0, 2.0, 0.0, -3.0, 2.0])
    expected = 0.3 / (3 * sigma_r) * (-3.0 * noise[0] + 2.0 * noise[2] - 5.0 * noise[4])
    assert step == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("num_best", [1, 3, 4, 7, 9, 12])
def test_the_directions_used_are_those_of_the_authors_code(num_best):
    rng = np.random.default_rng(num_best)
    for _ in range(50):
        returns = rng.integers(0, 5, 18).astype(float)  # so few values that most of them tie
        pairs = returns.reshape(9, 2)
        best = pairs.max(axis=1)
        share = min(num_best, 9) / 9
        used = best >= np.percentile(best, 100 * (1 - share))
        step, noise, _ = moved(ars(popsize=18, top_directions=num_best), returns)
        deviation = pairs[used].std()
        gradient = (pairs[used, 0] - pairs[used, 1]) @ noise[::2][used] / used.sum()
        assert step == pytest.approx(0.3 * gradient / deviation if deviation else 0 * gradient, abs=1e-5)


@pytest.mark.parametrize("sampler", ["antithetic", "orthogonal"])
def test_with_all_directions_it_is_openai_es_on_raw_returns_over_their_deviation(sampler):
    # popsize = 2 N; lr / (popsize sigma) sum r noise = lr' / (N sigma_R) sum r noise for lr = 2 sigma lr' / sigma_R
    fitness = np.random.default_rng(0).normal(size=6)
    settings = OpenAIESSettings(
        popsize=6,
        sampler=sampler,
        sigma=0.2,
        lr=2 * 0.2 * 0.3 / fitness.std(),
        fitness_shaping="raw",
        weight_penalty=0.0,
    )
    strategies = [ars(sampler=sampler), OpenAIES(settings, START, seed=0)]
    for strategy in strategies:
        tell(strategy, fitness)
    assert strategies[0].mean == pytest.approx(strategies[1].mean, abs=1e-6)
    assert not np.array_equal(strategies[0].mean, START)


def test_the_scale_of_the_returns_does_not_count():
    fitness = np.random.default_rng(0).normal(size=6)
    assert moved(ars(), fitness)[0] == pytest.approx(moved(ars(), 1000 * fitness - 77)[0], abs=1e-6)


def test_a_failed_member_counts_as_the_worst_that_finished():
    assert np.array_equal(moved(ars(), [1.0, NAN, 2.0, 0.0, -3.0, 2.0])[0], moved(ars(), [1, -3.0, 2, 0, -3, 2])[0])


@pytest.mark.parametrize("fitness", [np.full(6, 0.1), np.full(6, NAN), np.array([5.0, 5.0, 1.0, 0.0, 0.0, 1.0])])
def test_returns_without_a_deviation_move_nothing(fitness):
    step, _, figures = moved(ars(top_directions=1), fitness)
    assert not step.any()
    assert figures["update_norm"] == 0


def test_rounding_is_no_deviation():
    returns = np.full(10, 0.1 + 0.2)
    assert returns.std() > 0  # in float64
    strategy = ars(popsize=10)
    chunks = range(0, 3), range(3, 7), range(7, 11)  # edges between twins, whose noise does not cancel to the last bit
    population = strategy.ask(0)
    strategy.tell(
        population,
        np.append(returns, 0.0),
        lambda population, utilities, power=1: sum(population.combine(ids, utilities[ids], power) for ids in chunks),
    )
    assert np.array_equal(strategy.mean, START)


def test_a_population_with_fewer_directions_than_the_best_uses_those_it_has():
    full, shrunk, fewer = ars(popsize=4), ars(popsize=8, top_directions=4), ars(popsize=4, top_directions=4)
    for strategy in (full, shrunk, fewer):
        tell(strategy, np.array([1.0, 4.0, 2.0, 0.0]))
    assert np.array_equal(full.mean, shrunk.mean) and np.array_equal(full.mean, fewer.mean)


def test_schedules_are_constant_unless_asked_for():
    steady = search(ars(), 3)
    assert (steady["lr"], steady["sigma"]) == (0.3, 0.2)
    falling = ars(lr_schedule="exponential", decay=0.5, sigma_schedule="linear", sigma_min=0.1, schedule_generations=4)
    figures = search(falling, 3)
    assert (figures["lr"], figures["sigma"]) == pytest.approx((0.075, 0.15))


def test_the_best_directions_climb_a_sphere_too():
    strategy = ars(popsize=32, top_directions=4, lr=0.1)
    search(strategy, 150)
    assert sphere(strategy.mean[None])[0] > sphere(START[None])[0] / 50


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top_directions": 0}, "top_directions must be >= 1, got 0"),
        ({"popsize": 5}, "popsize must be an even number"),
        ({"lr": 0.0}, "lr must be a finite number > 0"),
    ],
)
def test_refuses_what_it_cannot_use(settings, message):
    with pytest.raises(ValueError, match=message):
        ars(**settings)
