"""What the strategies that drive a library do with ties."""

import numpy as np
import pytest

from tests.strategies.every_strategy import make, members


@pytest.mark.parametrize("name", ["cma_es", "sep_cma_es", "cr_fm_nes"])
def test_members_that_tie_get_the_same_weight_on_average(name):
    favours = []
    for seed in range(300):
        strategy = make(name, seed, popsize=6)
        population, before = strategy.ask(0), strategy.mean
        first, other = members(population)[[0, 3]]  # twins in cr_fm_nes
        strategy.tell(population, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]), None)
        favours.append((strategy.mean - before) @ (first - other) / np.square(first - other).sum())
    assert np.std(favours) > 0
    assert abs(np.mean(favours)) < 4 * np.std(favours) / np.sqrt(len(favours))


@pytest.mark.parametrize("name", ["cma_es", "sep_cma_es", "cr_fm_nes"])
def test_the_order_of_members_that_tie_is_drawn_for_each_generation(name, monkeypatch):
    strategy, orders = make(name, popsize=6), []
    tie_order = strategy._tie_order
    monkeypatch.setattr(strategy, "_tie_order", lambda rng: orders.append(tie_order(rng).tolist()) or tie_order(rng))
    for generation in range(4):
        strategy.tell(strategy.ask(generation), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]), None)
    assert len({tuple(order) for order in orders}) > 1
