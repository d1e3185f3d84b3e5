import numpy as np
import pytest
from searches import search, sphere, tell

from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from hebbes.strategies.snes import SNES, SNESSettings

START = np.random.default_rng(1).normal(size=8).astype(np.float32)


def snes(start=START, **settings):
    return SNES(SNESSettings(**{"sigma": 0.3, **settings}), start, seed=0)


def reference(mean, sigma, noise, fitness):
    """One step of the algorithm: members sorted, utilities of their ranks, mean by 1, sigma by its own rate."""
    n, d = noise.shape
    weights = np.array([max(0.0, np.log(n / 2 + 1) - np.log(rank)) for rank in range(1, n + 1)])
    utilities = weights / weights.sum() - 1 / n
    ordered = noise[np.argsort(-fitness)]
    rate = (3 + np.log(d)) / (5 * np.sqrt(d))
    return mean + sigma * (utilities @ ordered), sigma * np.exp(rate / 2 * (utilities @ (ordered**2 - 1)))


def test_three_steps_of_the_defaults_equal_an_independent_version():
    strategy, rng = snes(), np.random.default_rng(0)
    sigma = np.full(8, 0.3)
    for generation in range(3):
        mean, fitness = strategy.mean.astype(np.float64), rng.normal(size=10)
        noise, _ = tell(strategy, fitness, generation)
        mean, sigma = reference(mean, sigma, noise, fitness)
        assert strategy.mean == pytest.approx(mean, abs=1e-5)
        assert strategy.state_dict()["sigma"] == pytest.approx(sigma, rel=1e-5)


@pytest.mark.parametrize(
    ("num_params", "settings", "expected"),
    [
        (8, {}, 10),
        (1, {}, 4),
        (12288, {}, 32),
        (8, {"popsize": 9}, 9),
        (12, {}, 11),
        (12, {"sampler": "antithetic"}, 12),
    ],
)
def test_members_are_4_plus_3_ln_d_unless_given_and_even_where_they_are_twins(num_params, settings, expected):
    assert len(snes(np.zeros(num_params, np.float32), **settings).ask(0)) == expected + 1


def test_with_fixed_sigmas_it_is_openai_es_with_the_same_utilities():
    # lr sigma sum u z = lr' / (popsize sigma) sum u z for lr' = lr popsize sigma^2
    settings = OpenAIESSettings(
        popsize=7, sampler="normal", sigma=0.3, lr=0.8 * 7 * 0.09, fitness_shaping="nes_utilities", weight_penalty=0.0,
        lr_schedule="constant", sigma_schedule="constant",
    )  # fmt: skip
    strategies = [snes(popsize=7, lr=0.8, sigma_lr=0.0), OpenAIES(settings, START, seed=0)]
    for strategy in strategies:
        search(strategy, 5)
    assert strategies[0].mean == pytest.approx(strategies[1].mean, abs=1e-5)


@pytest.mark.parametrize("fitness", [np.zeros(10), np.full(10, np.nan)])
def test_a_generation_that_ties_or_fails_as_a_whole_moves_nothing(fitness):
    strategy = snes()
    tell(strategy, fitness)
    assert strategy.mean == pytest.approx(START, abs=1e-7)
    assert strategy.state_dict()["sigma"] == pytest.approx(np.full(8, 0.3))


def test_a_failed_member_ranks_last():
    worst, failed = snes(), snes()
    fitness = np.arange(10.0)
    tell(worst, fitness)
    tell(failed, np.where(fitness == 0, np.nan, fitness))
    assert np.array_equal(worst.mean, failed.mean)


def test_sigma_grows_on_a_slope_and_shrinks_on_a_peak():
    slope, peak = snes(), snes(popsize=20)
    search(slope, 30, lambda rows: rows[:, 0].astype(np.float64))
    assert slope.state_dict()["sigma"][0] > 1.0
    search(peak, 100)
    assert peak.state_dict()["sigma"].max() < 0.01
    assert sphere(peak.mean[None])[0] > -1e-4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"popsize": 7, "sampler": "orthogonal"}, "popsize must be an even number"),
        ({"sigma_lr": -0.1}, "sigma_lr must be a finite number >= 0, got -0.1"),
        ({"lr": 0.0}, "lr must be a finite number > 0, got 0.0"),
    ],
)
def test_refuses_what_it_cannot_use(settings, message):
    with pytest.raises(ValueError, match=message):
        snes(**settings)
