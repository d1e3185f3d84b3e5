"""The memory that strategies announce, compared with what they keep."""

import numpy as np
import pytest

from hebbes.contracts.strategy import EstimatesMemory
from hebbes.registry.lookup import find_class
from tests.strategies.every_strategy import SETTINGS, each_strategy, make_strategy, run_generations

NUM_PARAMS = 200
START = np.random.default_rng(1).normal(size=NUM_PARAMS).astype(np.float32)


@each_strategy
def test_the_state_is_as_large_as_announced(name):
    strategy, kept = make_strategy(name, start=START), []
    for generation in range(12 if name == "ga" else 2):  # its parents become rows when they have many mutations
        run_generations(strategy, 1, first=generation)
        kept.append(sum(array.nbytes for array in strategy.state_dict().values()))
    kind = find_class("strategy", name)
    assert isinstance(kind, EstimatesMemory)
    population_size = len(strategy.ask(12)) - 1
    said = kind.memory(kind.Settings(**SETTINGS[name]), NUM_PARAMS, population_size).state
    assert said == pytest.approx(max(kept), rel=0.3, abs=4 * NUM_PARAMS)


@each_strategy
def test_more_members_and_more_parameters_never_take_less(name):
    kind = find_class("strategy", name)
    few, many, large = (
        kind.memory(kind.Settings(), *sizes) for sizes in ((NUM_PARAMS, 10), (NUM_PARAMS, 1000), (2 * NUM_PARAMS, 10))
    )
    for other in (many, large):
        assert few.state <= other.state and few.update <= other.update and few.population <= other.population
