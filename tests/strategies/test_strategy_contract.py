"""What every strategy promises; test_strategy_state.py has the rest. A new file in strategies/ needs a line in BAD."""

import pickle
from dataclasses import fields

import numpy as np
import pytest

from hebbes.registry.lookup import lookup
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from tests.strategies.every_strategy import (
    FOUND,
    NUM_PARAMS,
    SETTINGS,
    START,
    assert_same,
    combine,
    each_strategy,
    make,
    members,
    run,
    sphere,
)

BAD = {
    "openai_es": {"popsize": 7},
    "ars": {"top_directions": 0},
    "pgpe": {"sigma_lr": -0.1},
    "snes": {"popsize": 1},
    "xnes": {"shape_lr": 0.0},
    "cem": {"elite_share": 0.0},
    "cma_es": {"popsize": 3},
    "sep_cma_es": {"popsize": -1},
    "cr_fm_nes": {"popsize": 9},
    "one_plus_one": {"sigma_min": -1.0},
    "ga": {"parents": 0},
}
"""A value that each refuses."""
DISTRIBUTION = {
    *("mean", "sigma", "shape", "covariance", "variances", "deviations", "direction", "sigma_path", "covariance_path"),
    *("optimizer.velocity", "optimizer.first", "optimizer.second"),
}
"""Arrays of a state that only evidence may change."""
WITHOUT_SCHEDULE = {"openai_es": {"sigma_decay": 1.0, "momentum": 0.9}}
"""Settings with which sigma does not change from one generation to the next whatever the returns."""
DENSE = {"cma_es", "xnes"}
"""Strategies for small policies, which send rows of weights rather than seeds."""


def test_every_strategy_is_tested():
    assert set(FOUND) == set(SETTINGS) == set(BAD)
    assert len(FOUND) >= 11


@each_strategy
def test_the_unperturbed_member_is_the_last_and_the_others_differ(name):
    strategy = make(name)
    run(strategy, 2)
    rows = members(strategy.ask(2))
    assert rows.dtype == strategy.mean.dtype == np.float32
    assert np.array_equal(rows[-1], strategy.mean)
    assert len({row.tobytes() for row in rows}) == len(rows) >= 2


@each_strategy
def test_the_search_starts_where_it_is_told_to_and_leaves_that_alone(name):
    start = START.copy()
    strategy = make(name, start=start)
    assert np.array_equal(strategy.mean, start)
    run(strategy, 5)
    assert np.array_equal(start, START)


@each_strategy
def test_same_seed_same_bits_and_another_seed_others(name):
    same, again, other = (make(name, seed) for seed in (0, 0, 1))
    for strategy in (same, again, other):
        run(strategy, 12)
    assert_same((same.state_dict(), again.state_dict()))
    assert not np.array_equal(same.mean, other.mean)


@each_strategy
def test_generations_have_noise_of_their_own(name):
    strategy = make(name)
    assert not np.array_equal(members(strategy.ask(0))[0], members(strategy.ask(1))[0])
    assert np.array_equal(members(strategy.ask(0)), members(strategy.ask(0)))


@each_strategy
def test_no_global_generator_is_touched(name):
    before = np.random.get_state()[1:3]  # noqa: NPY002
    run(make(name), 3)
    after = np.random.get_state()[1:3]  # noqa: NPY002
    assert np.array_equal(before[0], after[0]) and before[1] == after[1]


@each_strategy
def test_any_slice_made_anywhere_is_the_same(name):
    strategy = make(name)
    run(strategy, 12)
    population = strategy.ask(12)
    whole, elsewhere = members(population), pickle.loads(pickle.dumps(population))
    last = len(population) - 1
    for ids in ([last], [last // 2, 0, last], [1], range(last // 3, last)):
        assert np.array_equal(elsewhere.weights(ids), whole[list(ids)])


@each_strategy
def test_combine_is_linear_and_leaves_the_unperturbed_member_out(name):
    population = make(name).ask(0)
    last = len(population) - 1
    utilities = np.append(np.random.default_rng(0).normal(size=last), 5.0)
    for power in (1, 2):
        whole = combine(population, utilities, power)
        halves = [range(last // 2), range(last // 2, last + 1)]
        assert whole == pytest.approx(sum(population.combine(ids, utilities[list(ids)], power) for ids in halves))
        assert np.array_equal(population.combine([last], [5.0], power), np.zeros(NUM_PARAMS))
        assert np.isfinite(whole).all() and whole.any()


@each_strategy
def test_a_population_is_sent_as_seeds(name):
    start = np.zeros(400, np.float32)
    strategy = make(name, start=start, **({"popsize": 50} if "popsize" in SETTINGS[name] else {}))
    sent = 0
    for generation in range(12):  # more than a lineage's mutations
        sent = max(sent, len(pickle.dumps(strategy.ask(generation))))
        run(strategy, 1, first=generation)
    if name in DENSE:
        assert sent < 1.1 * members(strategy.ask(0)).nbytes + 1000
    else:
        # a mean and two vectors of float64 at most, or a row for each of the five parents of ga, not a row a member
        assert sent < 6.1 * start.nbytes + 2000


@each_strategy
def test_climbs_a_sphere(name):
    strategy, evaluations, generation = make(name), 0, 0
    start = sphere(strategy.mean[None])[0]
    while evaluations < 6000:
        population = strategy.ask(generation)
        strategy.tell(population, sphere(members(population)), combine)
        evaluations, generation = evaluations + len(population), generation + 1
        if sphere(strategy.mean[None])[0] > start / 100:
            break
    assert sphere(strategy.mean[None])[0] > start / 100


def fitness_with_failures(rows):
    fitness = sphere(rows)
    fitness[: len(rows) // 3 + 1] = np.nan
    return fitness


@each_strategy
@pytest.mark.parametrize(
    "fitness_of",
    [lambda rows: np.zeros(len(rows)), lambda rows: np.full(len(rows), np.nan), fitness_with_failures],
    ids=["ties", "all fail", "some fail"],
)
def test_ties_and_failures_leave_a_finite_state_from_which_it_goes_on(name, fitness_of):
    strategy = make(name)
    run(strategy, 3)
    run(strategy, 2, fitness_of, first=3)
    assert all(np.isfinite(array).all() for array in strategy.state_dict().values())
    figures = run(strategy, 3, first=5)
    assert np.isfinite(strategy.mean).all()
    assert all(np.isfinite(figures[key]) for key in ("sigma", "mean_norm", "update_norm"))


@each_strategy
@pytest.mark.parametrize("value", [3.0, np.nan], ids=["ties", "all fail"])
def test_a_generation_in_which_all_members_tie_moves_neither_mean_nor_spread(name, value):
    strategy = make(name, **WITHOUT_SCHEDULE.get(name, {}))
    run(strategy, 3)
    before, mean = {key: array.copy() for key, array in strategy.state_dict().items()}, strategy.mean
    figures = run(strategy, 2, lambda rows: np.full(len(rows), value), first=3)
    after = strategy.state_dict()
    assert [key for key in DISTRIBUTION & before.keys() if not np.array_equal(after[key], before[key])] == []
    if name == "one_plus_one" and value == 3.0:  # takes a candidate as good as its parent
        assert not np.array_equal(strategy.mean, mean)
    else:
        assert np.array_equal(strategy.mean, mean) and figures["update_norm"] == 0


@each_strategy
def test_a_failed_member_never_becomes_the_mean(name):
    strategy = make(name)
    for generation in range(8):
        population = strategy.ask(generation)
        rows = members(population)
        fitness = sphere(rows)
        best = int(np.argmax(fitness[:-1]))
        fitness[best] = np.nan
        strategy.tell(population, fitness, combine)
        assert not np.array_equal(strategy.mean, rows[best])


@each_strategy
def test_failing_is_as_bad_as_the_worst_return(name):
    means = {}
    for case in ("failed", "worst", "best"):
        strategy = make(name)
        population = strategy.ask(0)
        rows = members(population)
        fitness = sphere(rows)
        # the returns themselves count for ars, to which a failed member is as bad as the worst of the rest
        fitness[0] = {"failed": np.nan, "worst": fitness[1:-1].min() if name == "ars" else -1e6, "best": 1e6}[case]
        strategy.tell(population, fitness, combine)
        means[case] = strategy.mean
    assert (means["failed"] - means["best"]) @ (rows[0] - START) < 0
    if name != "cr_fm_nes":  # to which it is infeasible
        assert np.array_equal(means["failed"], means["worst"])


@each_strategy
def test_telling_changes_neither_fitness_nor_population(name):
    strategy = make(name)
    population = strategy.ask(0)
    rows = members(population)
    fitness = sphere(rows)
    fitness[0] = np.nan
    before = fitness.copy()
    strategy.tell(population, fitness, combine)
    assert np.array_equal(fitness, before, equal_nan=True)
    assert np.array_equal(members(population), rows)


@each_strategy
def test_figures_are_finite_and_say_what_moved(name):
    strategy = make(name)
    for generation in range(4):
        before = strategy.mean
        figures = run(strategy, 1, first=generation)
        moved = np.linalg.norm(strategy.mean - before)
        assert all(type(value) is float for value in figures.values())
        assert figures["sigma"] > 0
        assert figures["update_norm"] == pytest.approx(moved, abs=1e-5)
        assert figures["mean_norm"] == pytest.approx(np.linalg.norm(strategy.mean), abs=1e-5)


@each_strategy
def test_who_sums_noise_says_how_well_it_agrees(name):
    figures, gradient = run(make(name), 1), {"gradient_norm", "gradient_agreement"}
    if issubclass(lookup("strategy", name), GaussianStrategy):
        assert figures["gradient_norm"] > 0 and -1 <= figures["gradient_agreement"] <= 1
    else:
        assert gradient.isdisjoint(figures)


@each_strategy
@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_sigma_must_be_positive(name, sigma):
    with pytest.raises(ValueError, match=f"sigma must be .*> 0.*got {sigma}"):
        make(name, sigma=sigma)


@each_strategy
def test_settings_name_what_they_refuse(name):
    ((option, value),) = BAD[name].items()
    with pytest.raises(ValueError, match=rf"{option} must .*{value}"):
        make(name, **BAD[name])


@each_strategy
def test_every_setting_has_a_help_text(name):
    assert all(setting.metadata.get("help") for setting in fields(lookup("strategy", name).Settings))


@each_strategy
def test_noise_that_changes_no_weight_ends_the_search(name):
    strategy = make(name, start=START + 1e9)
    with pytest.raises(FloatingPointError, match="sigma"):
        strategy.ask(0)


@pytest.mark.parametrize("name", [name for name in FOUND if lookup("strategy", name).grows])
def test_who_grows_begins_with_the_same_members(name):
    strategy = make(name)
    few, many = members(strategy.ask(0, 10)), members(strategy.ask(0, 20))
    assert np.array_equal(few[:-1], many[:10])
    assert np.array_equal(few[-1], many[-1])
    strategy.tell(strategy.ask(0, 30), sphere(members(strategy.ask(0, 30))), combine)
    assert np.isfinite(strategy.mean).all() and not np.array_equal(strategy.mean, START)
