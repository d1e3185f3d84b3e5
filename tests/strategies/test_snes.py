import numpy as np
import pytest

from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from hebbes.strategies.snes import SNES, SNESSettings
from tests.strategies.every_strategy import run_generations, sphere, tell_fitness

START = np.random.default_rng(1).normal(size=8).astype(np.float32)


def make_snes(start=START, **settings):
    return SNES(SNESSettings(**{"sigma": 0.3, **settings}), start, seed=0)


def compute_reference_step(mean, sigma, noise, fitness):
    """One step of the algorithm, with the members sorted and the default learning rates of mean and sigmas."""
    n, d = noise.shape
    weights = np.array([max(0.0, np.log(n / 2 + 1) - np.log(rank)) for rank in range(1, n + 1)])
    utilities = weights / weights.sum() - 1 / n
    ordered = noise[np.argsort(-fitness)]
    rate = (3 + np.log(d)) / (5 * np.sqrt(d))
    return mean + sigma * (utilities @ ordered), sigma * np.exp(rate / 2 * (utilities @ (ordered**2 - 1)))


def test_three_steps_of_the_defaults_equal_an_independent_version():
    strategy, rng = make_snes(), np.random.default_rng(0)
    sigma = np.full(8, 0.3)
    for generation in range(3):
        mean, fitness = strategy.mean.astype(np.float64), rng.normal(size=10)
        noise, _ = tell_fitness(strategy, fitness, generation)
        mean, sigma = compute_reference_step(mean, sigma, noise, fitness)
        assert strategy.mean == pytest.approx(mean, abs=1e-5)
        assert strategy.state_dict()["sigma"] == pytest.approx(sigma, rel=1e-5)


@pytest.mark.parametrize(
    ("num_params", "settings", "expected"),
    [
        (8, {}, 10),
        (1, {}, 4),
        (12288, {}, 32),
        (8, {"population_size": 9}, 9),
        (12, {}, 11),
        (12, {"sampler": "antithetic"}, 12),
    ],
)
def test_members_are_4_plus_3_ln_d_unless_given_and_even_for_antithetic_pairs(num_params, settings, expected):
    assert len(make_snes(np.zeros(num_params, np.float32), **settings).ask(0)) == expected + 1


def test_with_fixed_sigmas_it_is_openai_es_with_the_same_utilities():
    # a, b: learning rates of SNES and of OpenAI-ES; n: population_size; s: sigma
    # a s sum u z = b / (n s) sum u z for b = a n s^2
    settings = OpenAIESSettings(
        population_size=7, sampler="normal", sigma=0.3, learning_rate=0.8 * 7 * 0.09, weight_penalty=0.0,
        fitness_shaping="nes_utilities", learning_rate_schedule="constant", sigma_schedule="constant",
    )  # fmt: skip
    strategies = [
        make_snes(population_size=7, learning_rate=0.8, sigma_learning_rate=0.0),
        OpenAIES(settings, START, seed=0),
    ]
    for strategy in strategies:
        run_generations(strategy, 5)
    assert strategies[0].mean == pytest.approx(strategies[1].mean, abs=1e-5)


def test_sigma_grows_on_a_slope_and_shrinks_on_a_peak():
    slope, peak = make_snes(), make_snes(population_size=20)
    run_generations(slope, 30, lambda rows: rows[:, 0].astype(np.float64))
    assert slope.state_dict()["sigma"][0] > 1.0
    run_generations(peak, 100)
    assert peak.state_dict()["sigma"].max() < 0.01
    assert sphere(peak.mean[None])[0] > -1e-4
