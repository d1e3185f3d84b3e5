from dataclasses import replace

import numpy as np
import pytest

from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from tests.strategies.every_strategy import make_members, make_results, run_generations, sphere, tell_fitness


def make_strategy(num_params=4, seed=0, **settings):
    start = np.random.default_rng(1).normal(size=num_params).astype(np.float32)
    return OpenAIES(OpenAIESSettings(**{"population_size": 10, **settings}), start, seed)


def run_generation(es, number, fitness_of=sphere):
    return run_generations(es, 1, fitness_of, first=number)


def compute_reference_step(mean, rows, fitness, learning_rate, sigma):
    """Najarro & Risi's update, written from its description: penalty, ranks over their deviation, step."""
    rows, population_size = rows[:-1].astype(np.float64), len(rows) - 1
    noise = (rows - mean) / sigma
    penalized = fitness[:-1] - 0.01 * (rows**2).mean(axis=1)
    ranks = np.empty(population_size)
    ranks[np.argsort(penalized)] = np.arange(population_size)
    shaped = ranks / (population_size - 1) - 0.5
    shaped /= shaped.std()
    return mean + learning_rate / (population_size * sigma) * (shaped[:, None] * noise).sum(axis=0)


def test_three_generations_of_the_defaults_equal_an_independent_numpy_version():
    es, rng = make_strategy(num_params=50, population_size=20), np.random.default_rng(5)
    mean, learning_rate, sigma = es.mean.astype(np.float64), 0.2, 0.1
    for number in range(3):
        population = es.ask(number)
        fitness = rng.normal(size=21)
        rows = make_members(population)
        mean = compute_reference_step(mean, rows, fitness, learning_rate, sigma)
        es.tell(population, make_results(population, fitness))
        learning_rate, sigma = max(learning_rate * 0.995, 0.001), max(sigma * 0.999, 0.01)
        assert es.mean == pytest.approx(mean, abs=2e-5)


def test_one_step_by_hand():
    settings = {
        "population_size": 2,
        "learning_rate": 0.3,
        "sigma": 0.2,
        "fitness_shaping": "centered_rank",
        "weight_penalty": 0.0,
    }
    es = make_strategy(num_params=1, weight_decay=0.5, **settings)
    before = float(es.mean[0])
    population = es.ask(0)
    noise = (float(make_members(population)[0, 0]) - before) / 0.2
    # the member with negative noise won: utilities -0.5 and 0.5
    es.tell(population, make_results(population, np.array([1.0, 2.0, 0.0])))
    assert es.mean[0] == pytest.approx(before + 0.3 * (-noise / (2 * 0.2) - 0.5 * before), abs=1e-6)


@pytest.mark.parametrize(
    "settings",
    [{"learning_rate": 0.02}, {"optimizer": "adam", "learning_rate": 0.05}, {"momentum": 0.5, "learning_rate": 0.01}],
)
def test_climbs_a_sphere(settings):
    es = make_strategy(num_params=10, population_size=40, **settings)
    start = sphere(es.mean[None])[0]
    for number in range(100):
        run_generation(es, number)
    assert sphere(es.mean[None])[0] > start / 50


def test_the_mean_policy_does_not_affect_the_update():
    low, high = make_strategy(), make_strategy()
    for es, last in ((low, -1e9), (high, 1e9)):
        population = es.ask(0)
        es.tell(population, make_results(population, np.append(np.arange(10.0), last)))
    assert np.array_equal(low.mean, high.mean)


@pytest.mark.parametrize(
    "settings",
    [
        {"momentum": 0.9},
        {"optimizer": "adam"},
        {"optimizer": "clip_up", "learning_rate": 0.1},
        {"learning_rate_schedule": "cosine", "sigma_schedule": "linear", "schedule_generations": 6},
        {"sigma_adaptation": 0.5, "sigma_patience": 2, "learning_rate": 1e-6, "sigma": 3.0},
    ],
)
def test_resumes_exactly(settings):
    whole, first, second = make_strategy(**settings), make_strategy(**settings), make_strategy(**settings)
    uninterrupted = run_generations(whole, 8)
    start = run_generations(first, 1)
    run_generations(first, 2, first=1)
    second.load_state_dict(first.state_dict())
    for number in range(3, 8):
        metrics = run_generation(second, number)
    assert np.array_equal(second.mean, whole.mean)
    rates = [[found[name] for name in ("learning_rate", "sigma")] for found in (metrics, uninterrupted, start)]
    assert rates[0] == rates[1] != rates[2]


def test_ties_are_broken_towards_small_weights_by_the_penalty():
    es = make_strategy(num_params=20, population_size=200)
    before = np.linalg.norm(es.mean)
    for number in range(20):
        run_generation(es, number, lambda rows: np.zeros(len(rows)))
    assert np.linalg.norm(es.mean) < 0.8 * before


def test_rates_decay_to_their_floors_after_the_step_and_never_rise_to_them():
    es = make_strategy(learning_rate_decay=0.5, learning_rate_min=0.15, sigma_decay=0.5, sigma_min=0.04)
    rows = [run_generation(es, number) for number in range(4)]
    assert [row["learning_rate"] for row in rows] == pytest.approx([0.2, 0.15, 0.15, 0.15])
    assert [row["sigma"] for row in rows] == pytest.approx([0.1, 0.05, 0.04, 0.04])
    below = make_strategy(learning_rate=0.1, learning_rate_min=0.15, sigma=0.03, sigma_min=0.04)
    rows = [run_generation(below, number) for number in range(3)]
    assert [(row["learning_rate"], row["sigma"]) for row in rows] == [(0.1, 0.03)] * 3


def test_in_a_tie_weight_decay_pauses_and_the_schedules_go_on():
    es = make_strategy(weight_decay=0.1, weight_penalty=0.0, learning_rate_decay=0.5, sigma_decay=0.5)
    before = es.mean.copy()
    rows = [run_generation(es, number, lambda rows: np.zeros(len(rows))) for number in range(3)]
    assert np.array_equal(es.mean, before)
    assert [(row["learning_rate"], row["sigma"]) for row in rows] == [(0.2, 0.1), (0.1, 0.05), (0.05, 0.025)]


def test_es_torchs_step_leaves_sigma_out():
    settings = {"fitness_shaping": "centered_rank", "weight_penalty": 0.0, "sigma": 0.2, "learning_rate": 0.3}
    es = make_strategy(num_params=3, population_size=4, divide_by_sigma=False, weight_decay=0.5, **settings)
    before = es.mean.astype(np.float64)
    noise, _ = tell_fitness(es, np.array([3.0, 1.0, 4.0, 2.0]))
    utilities = np.array([1 / 6, -1 / 2, 1 / 2, -1 / 6])
    assert es.mean == pytest.approx(before + 0.3 / 4 * utilities @ noise - 0.3 * 0.5 * before, abs=1e-6)


def test_the_shaping_named_is_the_one_used():
    es = make_strategy(
        num_params=3,
        population_size=4,
        sigma=0.2,
        learning_rate=0.3,
        weight_penalty=0.0,
        fitness_shaping="top_k",
        top_share=0.25,
    )
    before = es.mean.astype(np.float64)
    noise, _ = tell_fitness(es, np.array([3.0, 1.0, 4.0, 2.0]))
    assert es.mean == pytest.approx(before + 0.3 / (4 * 0.2) * noise[2], abs=1e-6)


def test_independent_noise_allows_an_odd_population():
    es = make_strategy(
        num_params=5,
        population_size=7,
        sampler="normal",
        sigma=0.2,
        learning_rate=0.3,
        fitness_shaping="raw",
        weight_penalty=0.0,
    )
    before, fitness = es.mean.astype(np.float64), np.random.default_rng(0).normal(size=7)
    noise, _ = tell_fitness(es, fitness)
    assert es.mean == pytest.approx(before + 0.3 / (7 * 0.2) * fitness @ noise, abs=1e-6)


def test_a_population_of_another_size_is_averaged_over_its_own_members():
    grown, usual = make_strategy(population_size=6), make_strategy(population_size=20)
    fitness = np.random.default_rng(0).normal(size=20)
    for es in (grown, usual):
        tell_fitness(es, fitness)
    assert np.array_equal(grown.mean, usual.mean)
    with pytest.raises(ValueError, match="num_members must be an even number >= 2"):
        grown.ask(1, 7)


def test_metrics_of_a_gradient_by_hand():
    settings = {"fitness_shaping": "centered_rank", "weight_penalty": 0.0, "sigma": 0.2, "learning_rate": 0.3}
    es = make_strategy(num_params=3, population_size=6, **settings)
    noise, metrics = tell_fitness(es, np.array([0.0, 1.0, 2.0, 5.0, 3.0, 2.0]))
    utilities = np.array([-0.5, -0.3, 0.0, 0.5, 0.3, 0.0])
    even, odd = utilities[[0, 1, 4, 5]] @ noise[[0, 1, 4, 5]], utilities[[2, 3]] @ noise[[2, 3]]
    gradient = (even + odd) / (6 * 0.2)
    assert metrics["gradient_norm"] == pytest.approx(np.linalg.norm(gradient), rel=1e-5)
    cosine = even @ odd / np.linalg.norm(even) / np.linalg.norm(odd)
    assert metrics["gradient_agreement"] == pytest.approx(cosine, rel=1e-4)
    assert metrics["update_norm"] == pytest.approx(0.3 * np.linalg.norm(gradient), rel=1e-5)
    assert metrics["update_over_sigma"] == pytest.approx(0.3 * np.linalg.norm(gradient) / 0.2 / np.sqrt(3), rel=1e-5)
    assert metrics["tied_share"] == pytest.approx(2 / 6)


def test_halves_agree_on_a_slope_and_not_on_noise():
    slope, rng = make_strategy(num_params=5, population_size=200, weight_penalty=0.0), np.random.default_rng(0)
    assert run_generation(slope, 0, lambda rows: rows[:, 0].astype(np.float64))["gradient_agreement"] > 0.8
    noise = [
        run_generation(slope, number, lambda rows: rng.normal(size=len(rows)))["gradient_agreement"]
        for number in range(30)
    ]
    assert abs(np.mean(noise)) < 0.3
    assert np.isnan(tell_fitness(slope, np.zeros(200))[1]["gradient_agreement"])


def test_orthogonal_blocks_are_halved_as_wholes():
    settings = {"sampler": "orthogonal", "fitness_shaping": "centered_rank", "weight_penalty": 0.0, "sigma": 0.2}
    one_block, two_blocks = (
        make_strategy(num_params=40, population_size=64, **settings),
        make_strategy(num_params=40, population_size=128, **settings),
    )
    assert np.isnan(tell_fitness(one_block, np.arange(64.0))[1]["gradient_agreement"])
    noise, metrics = tell_fitness(two_blocks, np.arange(128.0))
    utilities = np.arange(128) / 127 - 0.5
    first, second = utilities[:64] @ noise[:64], utilities[64:] @ noise[64:]
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert metrics["gradient_agreement"] == pytest.approx(cosine, rel=1e-3)


def test_the_penalty_goes_by_the_weights_of_the_results():
    es = make_strategy(num_params=1, population_size=2, weight_penalty=0.5, fitness_shaping="raw")
    population = es.ask(0)
    results = replace(
        make_results(population, np.array([3.0, 1.0, 0.0])), mean_squared_weights=np.array([4.0, 0.0, 9.0])
    )
    before = es.mean
    es.tell(population, results)
    assert np.array_equal(es.mean, before)  # 3 - 0.5 * 4 = 1


def test_sigma_follows_the_rank_of_the_mean_policy_down_to_its_floor():
    es = make_strategy(
        learning_rate=1e-9, sigma=1.0, sigma_schedule="constant", sigma_min=0.3, sigma_adaptation=0.5, sigma_patience=2
    )
    peak = es.mean.astype(np.float64)
    sigmas = [run_generation(es, n, lambda rows: -np.square(rows - peak).sum(axis=1))["sigma"] for n in range(7)]
    assert sigmas == pytest.approx([1.0, 1.0, 0.5, 0.5, 0.3, 0.3, 0.3])


def test_the_weight_penalty_does_not_count_for_the_rank_of_the_mean_policy():
    settings = {"sigma_adaptation": 0.5, "sigma_patience": 1, "sigma_schedule": "constant", "sigma": 1.0}
    es = make_strategy(num_params=1, population_size=2, weight_penalty=0.5, **settings)
    for number, sigma in enumerate([1.0, 0.5]):
        population = es.ask(number)
        results = make_results(population, np.array([1.0, 2.0, 3.0]))
        metrics = es.tell(population, replace(results, mean_squared_weights=np.array([0.0, 0.0, 100.0])))
        assert metrics["sigma"] == pytest.approx(sigma)


@pytest.mark.parametrize("settings", [{"sigma": 1e-12}, {"sigma": 1e200}])
def test_a_sigma_that_float32_cannot_use_is_refused_when_members_are_asked_for(settings):
    with pytest.raises(FloatingPointError, match="sigma"):
        make_strategy(**settings, sigma_min=0.0).ask(0)
