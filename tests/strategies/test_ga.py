import numpy as np
import pytest

from hebbes.strategies.core import lineages
from hebbes.strategies.ga import GA, GASettings
from tests.strategies.every_strategy import make_members, make_results

START = np.random.default_rng(2).normal(size=6).astype(np.float32)


def make_ga(**settings):
    return GA(GASettings(**{"population_size": 12, "parents": 4, "sigma": 0.1, **settings}), START, seed=3)


def run_generation(strategy, generation, fitness_of):
    population = strategy.ask(generation)
    strategy.tell(population, make_results(population, fitness_of(make_members(population))))
    return population


def sphere(rows):
    return -np.square(rows.astype(np.float64)).sum(axis=1)


def make_parent_rows(population):
    return [population.parents.make_row(parent) for parent in range(len(population.parents))]


def test_the_best_members_become_parents_and_the_best_of_them_the_elite():
    strategy = make_ga()
    rows = make_members(
        run_generation(strategy, 0, lambda rows: np.array([0, 3, np.nan, 9, 1, 0, 0, 0, 7, 0, 0, 0, 8.0]))
    )
    after = strategy.ask(1)
    assert np.array_equal(make_parent_rows(after), rows[[3, 12, 8, 1]])
    assert np.array_equal(strategy.mean, rows[3])
    steps = make_members(after)[:-1] - rows[[3, 12, 8, 1]][after.parent_of]
    assert steps.std() == pytest.approx(0.1, rel=0.25)
    assert set(after.parent_of) <= {0, 1, 2, 3} and len(set(after.parent_of)) > 1


def test_the_elite_stays_until_it_is_beaten():
    strategy = make_ga()
    for generation in range(6):
        run_generation(strategy, generation, lambda rows: np.zeros(13))
    assert np.array_equal(strategy.mean, START)
    run_generation(strategy, 6, lambda rows: np.append(np.zeros(11), [1e-9, 0.0]))
    assert not np.array_equal(strategy.mean, START)


def test_the_elite_is_judged_by_its_return_of_the_same_generation():
    strategy = make_ga()
    run_generation(strategy, 0, lambda rows: np.append(100.0, np.zeros(12)))
    lucky = strategy.mean
    rows = make_members(run_generation(strategy, 1, lambda rows: np.append(np.full(12, 2.0), 1.0)))
    assert np.array_equal(strategy.mean, rows[0]) and not np.array_equal(strategy.mean, lucky)


def test_failed_members_are_nobodys_parents():
    strategy = make_ga()
    rows = make_members(run_generation(strategy, 0, lambda rows: np.append(np.full(11, np.nan), [1.0, np.nan])))
    assert np.array_equal(make_parent_rows(strategy.ask(1)), rows[[11]])
    run_generation(strategy, 1, lambda rows: np.full(13, np.nan))
    assert np.array_equal(make_parent_rows(strategy.ask(2)), rows[[11]])


def test_one_parent_is_a_simple_hill_climber():
    strategy, best = make_ga(parents=1), START
    for generation in range(20):
        rows = make_members(run_generation(strategy, generation, sphere))
        best = max([best, *rows[:-1]], key=lambda row: sphere(row[None])[0])
        assert np.array_equal(strategy.mean, best)
    assert sphere(best[None])[0] > sphere(START[None])[0] / 4


def test_compacting_changes_no_bit_and_bounds_the_mutations(monkeypatch):
    ends = []
    for limit in (1, 3, 10_000):
        monkeypatch.setattr(lineages, "MAX_MUTATIONS", limit)
        strategy = make_ga(parents=6)
        for generation in range(40):
            population = run_generation(strategy, generation, sphere)
            assert max(map(len, population.parents.mutations)) <= limit
            assert len(population.parents.bases) <= 6
        ends.append(make_members(strategy.ask(40)))
    assert np.array_equal(ends[0], ends[1]) and np.array_equal(ends[0], ends[2])
    assert max(map(len, strategy.ask(40).parents.mutations)) > 10  # never compacted


def test_bases_without_heirs_are_dropped(monkeypatch):
    monkeypatch.setattr(lineages, "MAX_MUTATIONS", 1)
    strategy = make_ga(parents=6)
    for generation in range(5):
        run_generation(strategy, generation, sphere)
    run_generation(strategy, 5, lambda rows: np.append(1.0, np.full(12, np.nan)))
    assert len(strategy.state_dict()["bases"]) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"base_ids": np.array([0, 0, 5, 0])},
        {"base_ids": np.array([0, 0])},
        {"mutations": np.zeros((9, 2), np.int64)},
        {"mutations": np.full((3, 2), -1)},
        {"num_mutations": np.zeros(0, np.int64)},
        {"num_mutations": np.array([0, 1, 1, -1])},
        {"num_mutations": np.full(4, 2**62, np.int64), "mutations": np.zeros((0, 2), np.int64)},  # sum overflows to 0
        {"bases": np.zeros((1, 6))},
        {"bases": np.zeros((1, 7), np.float32)},
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(changes):
    strategy = make_ga()
    run_generation(strategy, 0, lambda rows: np.append(np.arange(12.0), 99.0))
    state = strategy.state_dict()
    assert len(state["mutations"]) == 3  # the elite is the start itself
    with pytest.raises(ValueError):
        make_ga().load_state_dict({**state, **changes})


def test_all_members_are_parents_where_there_are_fewer_than_asked_for():
    many, all_of_them = (make_ga(population_size=4, parents=parents) for parents in (20, 5))
    for generation in range(3):
        for strategy in (many, all_of_them):
            run_generation(strategy, generation, sphere)
    assert all(np.array_equal(array, all_of_them.state_dict()[name]) for name, array in many.state_dict().items())


def test_each_generation_draws_parents_of_its_own():
    strategy = make_ga(population_size=40)
    run_generation(strategy, 0, lambda rows: rows[:, 0].astype(np.float64))
    first, second = (strategy.ask(generation).parent_of for generation in (1, 2))
    assert len(set(first)) == 4 and not np.array_equal(first, second)
