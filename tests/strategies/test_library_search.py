"""How the strategies that use a library treat ties, and that they save what it changes."""

import numpy as np
import pytest

from hebbes.strategies.search import Search
from tests.strategies.every_strategy import make_members, make_results, make_strategy, sphere

NOT_SAVED = {
    "cma_es": {"_funhist_values"},  # serves the library's `should_stop` alone
    "sep_cma_es": {"_funhist_values"},
    "cr_fm_nes": {"f", "g", "no_of_evals", "f_best", "x_best", "z"},  # z is drawn anew, the others are never read
}
"""What changes in the library and has no effect on later generations."""
each_library = pytest.mark.parametrize("name", NOT_SAVED)


@pytest.mark.parametrize("name", ["cma_es", "sep_cma_es"])
def test_weights_that_the_library_does_not_take_are_refused(name):
    with pytest.raises(ValueError, match=f"strategy {name} needs initial weights below 1e\\+30"):
        Search(name, np.array([1e33, 0.0]))


@each_library
def test_members_that_tie_get_the_same_weight_on_average(name):
    favors = []
    for seed in range(300):
        strategy = make_strategy(name, seed, population_size=6)
        population, before = strategy.ask(0), strategy.mean
        first, other = make_members(population)[[0, 1]]  # an antithetic pair in cr_fm_nes
        strategy.tell(population, make_results(population, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])))
        favors.append((strategy.mean - before) @ (first - other) / np.square(first - other).sum())
    assert np.std(favors) > 0
    assert abs(np.mean(favors)) < 4 * np.std(favors) / np.sqrt(len(favors))


@each_library
def test_the_order_of_members_that_tie_is_drawn_for_each_generation(name, monkeypatch):
    strategy, orders = make_strategy(name, population_size=6), []
    draw_tie_order = strategy._draw_tie_order
    monkeypatch.setattr(
        strategy, "_draw_tie_order", lambda rng: orders.append(draw_tie_order(rng).tolist()) or draw_tie_order(rng)
    )
    for generation in range(4):
        strategy.tell(
            strategy.ask(generation),
            make_results(strategy.ask(generation), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])),
        )
    assert len({tuple(order) for order in orders}) > 1


@each_library
def test_all_that_changes_in_the_library_is_saved(name):
    strategy = make_strategy(name)
    before = {key: np.copy(value) for key, value in vars(strategy._library).items() if key != "_rng"}
    population = strategy.ask(0)
    strategy.tell(population, make_results(population, sphere(make_members(population))))
    changed = {key for key, value in before.items() if not np.array_equal(value, vars(strategy._library)[key])}
    assert changed - NOT_SAVED[name] == set(strategy.STATE.values())
