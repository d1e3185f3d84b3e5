"""What every strategy guarantees of its state: exact resume, plain arrays, nothing shared, nothing foreign."""

import numpy as np
import pytest

from tests.strategies.every_strategy import (
    NUM_PARAMS,
    START,
    assert_states_equal,
    each_strategy,
    make_strategy,
    run_generations,
)


@each_strategy
@pytest.mark.parametrize("generations", [0, 1, 10])
def test_resumes_exactly_whatever_its_start_and_earlier_generations(name, generations):
    whole, resumed = make_strategy(name), make_strategy(name, start=START + 3)
    run_generations(resumed, 2)
    resumed.ask(2)
    if generations:
        run_generations(whole, generations)
    resumed.load_state_dict({key: np.array(array) for key, array in whole.state_dict().items()})
    assert np.array_equal(resumed.mean, whole.mean)
    for strategy in (whole, resumed):
        run_generations(strategy, 12, first=generations)
    assert_states_equal((whole.state_dict(), resumed.state_dict()))
    assert np.array_equal(resumed.mean, whole.mean)


@each_strategy
def test_resumes_exactly_after_a_generation_in_which_all_members_tie(name):
    whole, resumed = make_strategy(name), make_strategy(name)
    run_generations(whole, 3)
    run_generations(whole, 1, lambda rows: np.zeros(len(rows)), first=3)
    resumed.load_state_dict(whole.state_dict())
    for strategy in (whole, resumed):
        run_generations(strategy, 3, first=4)
    assert_states_equal((whole.state_dict(), resumed.state_dict()))


@each_strategy
def test_the_state_is_arrays_that_later_generations_leave_alone(name):
    strategy = make_strategy(name)
    run_generations(strategy, 2)
    state = strategy.state_dict()
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in state.values())
    before, mean = {key: array.copy() for key, array in state.items()}, strategy.mean
    kept = mean.copy()
    run_generations(strategy, 3, first=2)
    assert_states_equal((before, state))
    assert np.array_equal(mean, kept)


@each_strategy
def test_loading_leaves_the_state_that_was_loaded_alone(name):
    strategy, source = make_strategy(name), make_strategy(name)
    run_generations(source, 3)
    state = source.state_dict()
    before = {key: array.copy() for key, array in state.items()}
    strategy.load_state_dict(state)
    run_generations(strategy, 4, first=3)
    assert_states_equal((before, state))


@each_strategy
def test_a_state_of_something_else_is_refused(name):
    strategy, larger = make_strategy(name), make_strategy(name, start=np.ones(NUM_PARAMS + 1, np.float32))
    run_generations(strategy, 2)
    own, mean = strategy.state_dict(), strategy.mean
    with pytest.raises(ValueError, match=rf"must be float.*{NUM_PARAMS}.*got float.*{NUM_PARAMS + 1}"):
        strategy.load_state_dict(larger.state_dict())
    with pytest.raises(ValueError, match="foreign"):
        strategy.load_state_dict({**own, "foreign": np.zeros(1)})
    for name_of_array, array in own.items():
        with pytest.raises(KeyError, match=name_of_array):
            strategy.load_state_dict({key: value for key, value in own.items() if key != name_of_array})
        for changed in (array[np.newaxis], array.astype(np.int16), np.zeros((), array.dtype), array.astype(complex)):
            if (changed.shape, changed.dtype) != (array.shape, array.dtype):
                with pytest.raises(ValueError, match=f"{name_of_array} must be"):
                    strategy.load_state_dict({**own, name_of_array: changed})
    assert np.array_equal(strategy.mean, mean)
    assert_states_equal((strategy.state_dict(), own))
