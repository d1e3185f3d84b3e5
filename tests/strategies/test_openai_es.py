import numpy as np
import pytest

from strategies.openai_es import OpenaiEs, OpenaiEsSettings, decayed


def combine(population, utilities):
    return population.combine(range(len(population)), utilities)


def strategy(num_params=4, seed=0, **settings):
    start = np.random.default_rng(1).normal(size=num_params).astype(np.float32)
    return OpenaiEs(OpenaiEsSettings(**{"popsize": 10, **settings}), start, seed)


def members(population):
    return population.weights(range(len(population)))


def sphere(rows):
    return -np.square(rows.astype(np.float64) - 0.5).sum(axis=1)


def generation(es, number, fitness_of=sphere):
    population = es.ask(number)
    return es.tell(population, fitness_of(members(population)), combine)


def reference(mean, rows, fitness, lr, sigma):
    """Najarro & Risi's update, from its description: penalty, ranks over their deviation, step, nothing shared."""
    rows, popsize = rows[:-1].astype(np.float64), len(rows) - 1
    noise = (rows - mean) / sigma
    penalised = fitness[:-1] - 0.01 * (rows**2).mean(axis=1)
    ranks = np.empty(popsize)
    ranks[np.argsort(penalised)] = np.arange(popsize)
    shaped = ranks / (popsize - 1) - 0.5
    shaped /= shaped.std()
    return mean + lr / (popsize * sigma) * (shaped[:, None] * noise).sum(axis=0)


def test_three_generations_of_the_defaults_equal_an_independent_numpy_version():
    es, rng = strategy(num_params=50, popsize=20), np.random.default_rng(5)
    mean, lr, sigma = es.mean.astype(np.float64), 0.2, 0.1
    for number in range(3):
        population = es.ask(number)
        fitness = rng.normal(size=21)
        rows = members(population)
        mean = reference(mean, rows, fitness, lr, sigma)
        es.tell(population, fitness, combine)
        lr, sigma = max(lr * 0.995, 0.001), max(sigma * 0.999, 0.01)
        assert es.mean == pytest.approx(mean, abs=2e-5)


def test_one_step_by_hand():
    settings = {"popsize": 2, "lr": 0.3, "sigma": 0.2, "fitness_shaping": "centered_rank", "weight_penalty": 0.0}
    es = strategy(num_params=1, weight_decay=0.5, **settings)
    before = float(es.mean[0])
    population = es.ask(0)
    noise = (float(members(population)[0, 0]) - before) / 0.2
    es.tell(population, np.array([1.0, 2.0, 0.0]), combine)  # the minus twin won: utilities -0.5 and 0.5
    assert es.mean[0] == pytest.approx(before + 0.3 * (-noise / (2 * 0.2) - 0.5 * before), abs=1e-6)


@pytest.mark.parametrize("settings", [{"lr": 0.02}, {"optimizer": "adam", "lr": 0.05}, {"momentum": 0.5, "lr": 0.01}])
def test_climbs_a_sphere(settings):
    es = strategy(num_params=10, popsize=40, **settings)
    start = sphere(es.mean[None])[0]
    for number in range(100):
        generation(es, number)
    assert sphere(es.mean[None])[0] > start / 50


def test_the_unperturbed_member_has_no_say():
    low, high = strategy(), strategy()
    for es, last in ((low, -1e9), (high, 1e9)):
        population = es.ask(0)
        es.tell(population, np.append(np.arange(10.0), last), combine)
    assert np.array_equal(low.mean, high.mean)


def test_same_seed_same_result_and_another_seed_another():
    runs = [strategy(seed=seed) for seed in (0, 0, 1)]
    for es in runs:
        for number in range(5):
            generation(es, number)
    assert np.array_equal(runs[0].mean, runs[1].mean)
    assert not np.array_equal(runs[0].mean, runs[2].mean)


@pytest.mark.parametrize("settings", [{"momentum": 0.9}, {"optimizer": "adam"}])
def test_resumes_exactly(settings):
    whole, first, second = strategy(**settings), strategy(**settings), strategy(**settings)
    for number in range(8):
        generation(whole, number)
    for number in range(3):
        generation(first, number)
    second.load_state_dict(first.state_dict())
    for number in range(3, 8):
        figures = generation(second, number)
    assert np.array_equal(second.mean, whole.mean)
    assert figures["lr"] == pytest.approx(0.2 * 0.995**7)


@pytest.mark.parametrize("fitness", [np.zeros(11), np.full(11, np.nan)])
def test_a_generation_that_ties_or_fails_as_a_whole_leaves_the_mean(fitness):
    es = strategy(weight_penalty=0.0)
    before = es.mean
    es.tell(es.ask(0), fitness, combine)
    assert np.array_equal(es.mean, before)


def test_ties_are_broken_towards_small_weights_by_the_penalty():
    es = strategy(num_params=20, popsize=200)
    before = np.linalg.norm(es.mean)
    for number in range(20):
        generation(es, number, lambda rows: np.zeros(len(rows)))
    assert np.linalg.norm(es.mean) < 0.8 * before


def test_a_failed_member_pushes_the_mean_away():
    es = strategy(num_params=1, popsize=2, weight_penalty=0.0)
    population, before = es.ask(0), es.mean[0]
    es.tell(population, np.array([np.nan, -1e9, 0.0]), combine)
    twin = members(population)[1, 0]
    assert np.sign(es.mean[0] - before) == np.sign(twin - before)


def test_rates_decay_to_their_floors_after_the_step_and_never_rise_to_them():
    es = strategy(decay=0.5, lr_min=0.15, sigma_decay=0.5, sigma_min=0.04)
    rows = [generation(es, number) for number in range(4)]
    assert [row["lr"] for row in rows] == pytest.approx([0.2, 0.15, 0.15, 0.15])
    assert [row["sigma"] for row in rows] == pytest.approx([0.1, 0.05, 0.04, 0.04])
    assert decayed(0.0005, 0.995, 0.001) == 0.0005


@pytest.mark.parametrize(
    ("setting", "value", "allowed"),
    [
        ("popsize", 7, "even"),
        ("popsize", 0, ">= 2"),
        ("sigma", 0.0, "> 0"),
        ("sigma", -1.0, "> 0"),
        ("sigma", float("nan"), "> 0"),
        ("lr", float("inf"), "finite"),
        ("decay", 1.5, r"\(0, 1\]"),
        ("sigma_decay", 0.0, r"\(0, 1\]"),
        ("momentum", 1.0, r"\[0, 1\)"),
        ("weight_decay", -0.1, ">= 0"),
    ],
)
def test_refuses_what_it_cannot_use(setting, value, allowed):
    with pytest.raises(ValueError, match=rf"{setting} must be .*{allowed}.*got {value}"):
        OpenaiEsSettings(**{setting: value})
