import numpy as np
import pytest

from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from hebbes.strategies.pgpe import PGPE, PGPESettings
from tests.strategies.every_strategy import run_generations, sphere, tell_fitness

START = np.random.default_rng(1).normal(size=5).astype(np.float32)
FITNESS = np.array([1.0, 4.0, 2.0, 0.0, -3.0, 3.0])
UTILITIES = np.array([-0.1, 0.5, 0.1, -0.3, -0.5, 0.3])


def make_pgpe(**settings):
    return PGPE(PGPESettings(**{"population_size": 6, "sigma": 0.2, **settings}), START, seed=0)


def test_two_steps_of_the_mean_and_the_sigmas_by_hand():
    strategy = make_pgpe(optimizer="sgd", learning_rate=3.0, sigma_learning_rate=0.4, max_sigma_change=0.9)
    sigma = np.full(5, 0.2)
    for generation in range(2):
        mean = strategy.mean.astype(np.float64)
        noise, _ = tell_fitness(strategy, FITNESS, generation)
        moves = sigma * noise
        pairs, odd = UTILITIES.reshape(3, 2), moves[0::2]
        step = ((pairs[:, 0] - pairs[:, 1]) / 2) @ odd / 3
        assert strategy.mean == pytest.approx(mean + 3.0 * step, abs=1e-6)
        # Sehnke et al.: (u+ + u-)/2 (eps^2 - sigma^2) / sigma
        sigma = sigma + 0.4 * (pairs.mean(axis=1) @ ((odd**2 - sigma**2) / sigma)) / 3
        assert strategy.state_dict()["sigma"] == pytest.approx(sigma, rel=1e-5)
    assert np.ptp(sigma) > 0.001


def test_sigma_changes_by_its_limit_at_most():
    strategy = make_pgpe(sigma_learning_rate=1e6, max_sigma_change=0.25)
    tell_fitness(strategy, FITNESS)
    sigma = strategy.state_dict()["sigma"]
    assert set(np.round(sigma, 12)) == {0.15, 0.25}


def test_rounding_of_the_baseline_moves_nothing_where_all_members_tie():
    strategy = make_pgpe(population_size=10, fitness_shaping="raw")
    tell_fitness(strategy, np.arange(10.0))
    before = {key: array.copy() for key, array in strategy.state_dict().items()}
    tell_fitness(strategy, np.full(10, 1e7 / 3), generation=1)
    after = strategy.state_dict()
    assert [key for key in ("mean", "sigma", "optimizer.velocity") if not np.array_equal(after[key], before[key])] == []


@pytest.mark.parametrize(
    "optimizer", [{"optimizer": "clip_up", "learning_rate": 0.1}, {"optimizer": "adam", "learning_rate": 0.05}]
)
@pytest.mark.parametrize("sampler", ["antithetic", "orthogonal"])
def test_with_fixed_sigmas_it_is_openai_es(optimizer, sampler):
    settings = OpenAIESSettings(
        population_size=6, sigma=0.2, sampler=sampler, fitness_shaping="centered_rank", weight_penalty=0.0,
        learning_rate_schedule="constant", sigma_schedule="constant", **optimizer,
    )  # fmt: skip
    strategies = [make_pgpe(sigma_learning_rate=0.0, sampler=sampler, **optimizer), OpenAIES(settings, START, seed=0)]
    for strategy in strategies:
        run_generations(strategy, 5)
    assert strategies[0].mean == pytest.approx(strategies[1].mean, abs=1e-4)
    assert np.abs(strategies[0].mean - START).max() > 0.01


@pytest.mark.parametrize(
    ("settings", "num_params", "expected"),
    [
        ({}, 90_000, 2.0),
        ({"sigma": 0.1}, 900, 0.1),
        ({"max_speed": 0.4}, 900, 0.2),
        ({"optimizer": "adam"}, 900, 0.075),
        ({"learning_rate": 0.3}, 900, 0.3),
    ],
)
def test_the_default_learning_rate_of_clip_up_is_a_thirtieth_of_the_radius(settings, num_params, expected):
    found = PGPESettings(**{"population_size": 2, "sigma": 0.2, **settings})
    strategy = PGPE(found, np.zeros(num_params, np.float32), seed=0)
    _, metrics = tell_fitness(strategy, np.array([1.0, 0.0]))
    assert metrics["learning_rate"] == pytest.approx(expected)


def test_an_offset_of_all_utilities_does_not_change_sigma():
    strategies = [make_pgpe(fitness_shaping="raw", sigma_learning_rate=0.01) for _ in range(2)]
    for strategy, shift in zip(strategies, (0.0, 1000.0), strict=True):
        tell_fitness(strategy, FITNESS + shift)
    first, second = (strategy.state_dict() for strategy in strategies)
    assert first["sigma"] == pytest.approx(second["sigma"], rel=1e-9)
    assert first["mean"] == pytest.approx(second["mean"], rel=1e-9)


def test_each_parameter_gets_the_sigma_that_suits_it():
    strategy = make_pgpe(population_size=100, sigma_learning_rate=0.3)
    run_generations(strategy, 60, lambda rows: -(rows[:, 0].astype(np.float64) ** 2))
    sigma = strategy.state_dict()["sigma"]
    assert sigma[0] < 0.5 * sigma[1:].min()


def test_climbs_a_sphere_with_its_defaults():
    strategy = make_pgpe(population_size=40)
    run_generations(strategy, 100)
    assert sphere(strategy.mean[None])[0] > sphere(START[None])[0] / 100


def test_the_learning_rate_follows_its_schedule_also_where_all_members_tie():
    falling = make_pgpe(learning_rate=0.4, learning_rate_schedule="exponential", learning_rate_decay=0.5)
    assert [tell_fitness(falling, np.zeros(6), k)[1]["learning_rate"] for k in range(3)] == [0.4, 0.2, 0.1]
