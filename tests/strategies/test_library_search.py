"""How the strategies that use a library treat ties."""

import numpy as np
import pytest

from tests.strategies.every_strategy import make_members, make_results, make_strategy


@pytest.mark.parametrize("name", ["cma_es", "sep_cma_es", "cr_fm_nes"])
def test_members_that_tie_get_the_same_weight_on_average(name):
    favors = []
    for seed in range(300):
        strategy = make_strategy(name, seed, population_size=6)
        population, before = strategy.ask(0), strategy.mean
        first, other = make_members(population)[[0, 3]]  # an antithetic pair in cr_fm_nes
        strategy.tell(population, make_results(population, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])))
        favors.append((strategy.mean - before) @ (first - other) / np.square(first - other).sum())
    assert np.std(favors) > 0
    assert abs(np.mean(favors)) < 4 * np.std(favors) / np.sqrt(len(favors))


@pytest.mark.parametrize("name", ["cma_es", "sep_cma_es", "cr_fm_nes"])
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
