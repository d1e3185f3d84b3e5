"""What strategies say that they would take of memory, against what they keep."""

import numpy as np
import pytest

from hebbes.contracts.strategy import SaysMemory
from hebbes.registry.lookup import lookup
from tests.strategies.every_strategy import SETTINGS, each_strategy, make, run

NUM_PARAMS = 500
START = np.random.default_rng(1).normal(size=NUM_PARAMS).astype(np.float32)


@each_strategy
def test_the_state_is_as_large_as_was_said(name):
    strategy, kept = make(name, start=START), []
    for generation in range(12):  # parents of ga are rows once they have gathered mutations
        run(strategy, 1, first=generation)
        kept.append(sum(array.nbytes for array in strategy.state_dict().values()))
    kind = lookup("strategy", name)
    assert isinstance(kind, SaysMemory)
    popsize = len(strategy.ask(12)) - 1
    said = kind.memory(kind.Settings(**SETTINGS[name]), NUM_PARAMS, popsize).state
    assert said == pytest.approx(max(kept), rel=0.3, abs=4 * NUM_PARAMS)


@each_strategy
def test_more_members_and_more_parameters_never_take_less(name):
    kind = lookup("strategy", name)
    few, many, large = (
        kind.memory(kind.Settings(), *sizes) for sizes in ((NUM_PARAMS, 10), (NUM_PARAMS, 1000), (2 * NUM_PARAMS, 10))
    )
    for other in (many, large):
        assert few.state <= other.state and few.update <= other.update and few.population <= other.population
