"""What every strategy guarantees (its state: test_strategy_state.py)."""

import pickle

import numpy as np
import pytest

from hebbes.registry.lookup import find_class
from tests.strategies.every_strategy import (
    SETTINGS,
    START,
    STRATEGY_NAMES,
    SUMS_NOISE,
    assert_states_equal,
    each_strategy,
    make_members,
    make_results,
    make_strategy,
    run_generations,
    sphere,
)

DISTRIBUTION = {
    *("mean", "sigma", "shape", "covariance", "variances", "deviations", "direction", "sigma_path", "covariance_path"),
    *("optimizer.velocity", "optimizer.first", "optimizer.second"),
}
"""Arrays of a state that change only if the members differ in fitness."""
WITHOUT_SCHEDULE = {"openai_es": {"sigma_decay": 1.0, "momentum": 0.9}}
"""Settings with which no schedule changes sigma."""
DENSE = {"cma_es", "xnes"}
"""Strategies for small policies, which send rows of weights rather than seeds."""
PAIRED = ("openai_es", "ars", "pgpe", "cem", "cr_fm_nes")
"""Strategies whose members are antithetic pairs by default."""


def test_every_strategy_is_tested():
    assert set(STRATEGY_NAMES) == set(SETTINGS)
    assert len(STRATEGY_NAMES) >= 11


@each_strategy
def test_the_mean_policy_is_the_last_member_and_the_others_differ(name):
    strategy = make_strategy(name)
    run_generations(strategy, 2)
    rows = make_members(strategy.ask(2))
    assert rows.dtype == strategy.mean.dtype == np.float32
    assert np.array_equal(rows[-1], strategy.mean)
    assert len({row.tobytes() for row in rows}) == len(rows) >= 2


@each_strategy
def test_antithetic_pairs_are_members_2k_and_2k_plus_1(name):
    rows = make_members(make_strategy(name).ask(0)).astype(np.float64)
    noise = rows[:-1] - rows[-1]
    mirrors = np.isclose(noise[:, np.newaxis], -noise, atol=1e-6).all(axis=2)
    assert mirrors.sum() == (len(noise) if name in PAIRED else 0)
    assert all(each ^ 1 == other for each, other in np.argwhere(mirrors))


@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in PAIRED), ("snes", {"sampler": "orthogonal"})])
def test_pairs_need_an_even_population(name, options):
    with pytest.raises(ValueError, match=r"^population_size must be an even number.*, got 7"):
        make_strategy(name, population_size=7, **options)


@each_strategy
def test_the_search_starts_where_it_is_told_to_and_leaves_that_alone(name):
    start = START.copy()
    strategy = make_strategy(name, start=start)
    assert np.array_equal(strategy.mean, start)
    run_generations(strategy, 5)
    assert np.array_equal(start, START)


@each_strategy
def test_same_seed_same_bits_and_another_seed_others(name):
    same, again, other = (make_strategy(name, seed) for seed in (0, 0, 1))
    for strategy in (same, again, other):
        run_generations(strategy, 12)
    assert_states_equal((same.state_dict(), again.state_dict()))
    assert not np.array_equal(same.mean, other.mean)


@each_strategy
def test_generations_have_noise_of_their_own(name):
    strategy = make_strategy(name)
    assert not np.array_equal(make_members(strategy.ask(0))[0], make_members(strategy.ask(1))[0])
    assert np.array_equal(make_members(strategy.ask(0)), make_members(strategy.ask(0)))


@each_strategy
def test_no_global_generator_is_touched(name):
    before = np.random.get_state()[1:3]  # noqa: NPY002
    run_generations(make_strategy(name), 3)
    after = np.random.get_state()[1:3]  # noqa: NPY002
    assert np.array_equal(before[0], after[0]) and before[1] == after[1]


@each_strategy
def test_any_slice_made_anywhere_is_the_same(name):
    strategy = make_strategy(name)
    run_generations(strategy, 12)
    population = strategy.ask(12)
    whole, elsewhere = make_members(population), pickle.loads(pickle.dumps(population))
    last = len(population) - 1
    for ids in ([last], [last // 2, 0, last], [1], range(last // 3, last)):
        assert np.array_equal(elsewhere.weights(ids), whole[list(ids)])


@each_strategy
def test_a_population_is_sent_as_seeds(name):
    start = np.zeros(400, np.float32)
    strategy = make_strategy(
        name, start=start, **({"population_size": 50} if "population_size" in SETTINGS[name] else {})
    )
    sent = 0
    for generation in range(1 if name in DENSE else 12):  # more generations than a lineage may have mutations
        sent = max(sent, len(pickle.dumps(strategy.ask(generation))))
        run_generations(strategy, 1, first=generation)
    if name in DENSE:
        assert sent < 1.1 * make_members(strategy.ask(0)).nbytes + 1000
    else:
        # at most a mean and two float64 vectors, or a row for each of the five parents of ga, but not a row per member
        assert sent < 6.1 * start.nbytes + 2000


@each_strategy
def test_climbs_a_sphere(name):
    strategy, evaluations, generation = make_strategy(name), 0, 0
    start = sphere(strategy.mean[None])[0]
    while evaluations < 6000:
        population = strategy.ask(generation)
        strategy.tell(population, make_results(population, sphere(make_members(population))))
        evaluations, generation = evaluations + len(population), generation + 1
        if sphere(strategy.mean[None])[0] > start / 100:
            break
    assert sphere(strategy.mean[None])[0] > start / 100


def compute_fitness_with_failures(rows):
    fitness = sphere(rows)
    fitness[: len(rows) // 3 + 1] = np.nan
    return fitness


@each_strategy
@pytest.mark.parametrize(
    "fitness_of",
    [lambda rows: np.zeros(len(rows)), lambda rows: np.full(len(rows), np.nan), compute_fitness_with_failures],
    ids=["ties", "all fail", "some fail"],
)
def test_ties_and_failures_leave_a_finite_state_from_which_it_goes_on(name, fitness_of):
    strategy = make_strategy(name)
    run_generations(strategy, 3)
    run_generations(strategy, 2, fitness_of, first=3)
    assert all(np.isfinite(array).all() for array in strategy.state_dict().values())
    metrics = run_generations(strategy, 3, first=5)
    assert np.isfinite(strategy.mean).all()
    assert all(np.isfinite(metrics[key]) for key in ("sigma", "mean_norm", "update_norm"))


@each_strategy
@pytest.mark.parametrize("value", [3.0, np.nan], ids=["ties", "all fail"])
def test_a_generation_in_which_all_members_tie_moves_neither_mean_nor_spread(name, value):
    strategy = make_strategy(name, **WITHOUT_SCHEDULE.get(name, {}))
    run_generations(strategy, 3)
    before, mean = {key: array.copy() for key, array in strategy.state_dict().items()}, strategy.mean
    metrics = run_generations(strategy, 2, lambda rows: np.full(len(rows), value), first=3)
    after = strategy.state_dict()
    assert [key for key in DISTRIBUTION & before.keys() if not np.array_equal(after[key], before[key])] == []
    if name == "one_plus_one" and value == 3.0:  # accepts a candidate that is as good as its parent
        assert not np.array_equal(strategy.mean, mean)
    else:
        assert np.array_equal(strategy.mean, mean) and metrics["update_norm"] == 0


@pytest.mark.parametrize("name", ["openai_es", "pgpe"])
@pytest.mark.parametrize("shaping", ["raw", "linear", "z_score"])
def test_members_of_one_utility_move_nothing_even_if_one_has_failed(name, shaping):
    strategy = make_strategy(name, fitness_shaping=shaping)
    run_generations(strategy, 3)  # so that there is momentum
    mean = strategy.mean
    run_generations(strategy, 1, lambda rows: np.where(np.arange(len(rows)) == 2, np.nan, 3.0), first=3)
    assert np.array_equal(strategy.mean, mean)


@each_strategy
def test_failing_is_as_bad_as_the_worst_return(name):
    means = {}
    for case in ("failed", "worst", "best"):
        strategy = make_strategy(name)
        population = strategy.ask(0)
        rows = make_members(population)
        fitness = sphere(rows)
        # ars uses the returns themselves: a failed member counts as the worst of the rest
        fitness[0] = {"failed": np.nan, "worst": fitness[1:-1].min() if name == "ars" else -1e6, "best": 1e6}[case]
        strategy.tell(population, make_results(population, fitness))
        means[case] = strategy.mean
    assert (means["failed"] - means["best"]) @ (rows[0] - START) < 0
    if name != "cr_fm_nes":  # treats failed members as infeasible
        assert np.array_equal(means["failed"], means["worst"])


@each_strategy
def test_telling_changes_neither_fitness_nor_population(name):
    strategy = make_strategy(name)
    population = strategy.ask(0)
    rows = make_members(population)
    fitness = sphere(rows)
    fitness[0] = np.nan
    before = fitness.copy()
    strategy.tell(population, make_results(population, fitness))
    assert np.array_equal(fitness, before, equal_nan=True)
    assert np.array_equal(make_members(population), rows)


@each_strategy
def test_metrics_are_finite_and_describe_the_update(name):
    strategy = make_strategy(name)
    for generation in range(4):
        before = strategy.mean
        metrics = run_generations(strategy, 1, first=generation)
        moved = np.linalg.norm(strategy.mean - before)
        assert all(type(value) is float for value in metrics.values())
        assert metrics["sigma"] > 0
        assert metrics["update_norm"] == pytest.approx(moved, abs=1e-5)
        assert metrics["mean_norm"] == pytest.approx(np.linalg.norm(strategy.mean), abs=1e-5)


@each_strategy
def test_strategies_that_sum_noise_report_the_agreement_of_its_halves(name):
    metrics, gradient = run_generations(make_strategy(name), 1), {"gradient_norm", "gradient_agreement"}
    if name in SUMS_NOISE:
        assert metrics["gradient_norm"] > 0 and -1 <= metrics["gradient_agreement"] <= 1
    else:
        assert gradient.isdisjoint(metrics)


@each_strategy
def test_noise_that_changes_no_weight_ends_the_search(name):
    strategy = make_strategy(name, start=START + 1e9)
    with pytest.raises(FloatingPointError, match="sigma"):
        strategy.ask(0)


@pytest.mark.parametrize("name", [name for name in STRATEGY_NAMES if find_class("strategy", name).grows])
def test_larger_populations_begin_with_the_same_members(name):
    strategy = make_strategy(name)
    few, many = make_members(strategy.ask(0, 10)), make_members(strategy.ask(0, 20))
    assert np.array_equal(few[:-1], many[:10])
    assert np.array_equal(few[-1], many[-1])
    population = strategy.ask(0, 30)
    strategy.tell(population, make_results(population, sphere(make_members(population))))
    assert np.isfinite(strategy.mean).all() and not np.array_equal(strategy.mean, START)
