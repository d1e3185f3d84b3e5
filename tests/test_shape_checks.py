"""The checks of shapes are on: calls that contradict the annotations are refused, wherever they come from."""

import inspect
from importlib import import_module

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from hebbes.contracts.engine import Rollouts
from hebbes.evaluation.weight_recording import WeightRecording
from hebbes.execution.noise_sums import PairwiseSum
from hebbes.strategies.core.shaping import assign_by_rank, raw
from tests.shape_checks import (
    CHECKED_CALLS,
    CHECKED_SUBPACKAGES,
    REFUSALS,
    SAMPLED_CALLS,
    begin_test,
    has_arrays,
    list_checked_modules,
    unchecked,
)

FITNESS = np.zeros(3)


@pytest.fixture(autouse=True)
def no_refusal_is_swallowed():
    """Instead of the fixture for all other tests: here refusals are what is tested."""
    begin_test()


@pytest.mark.parametrize(
    "values",
    [np.zeros((1, 3)), np.zeros(4), np.zeros(3, np.float32), [0.0, 0.0, 0.0]],
    ids=["axes", "size", "number type", "list"],
)
def test_an_argument_of_another_shape_or_type_is_refused(values):
    assert assign_by_rank(FITNESS, np.zeros(3)).shape == (3,)
    with pytest.raises(TypeCheckError, match=r"assign_by_rank(.|\n)*Expected type: .*members"):
        assign_by_rank(FITNESS, values)


def test_a_result_of_another_shape_is_refused():
    sums = PairwiseSum(1)
    sums._waiting[1, 0] = np.zeros(3)
    with pytest.raises(TypeCheckError, match=r"return value of hebbes\.execution\.noise_sums\.PairwiseSum\.total"):
        _ = sums.total


def test_an_item_of_a_list_is_checked():
    WeightRecording([np.zeros((2, 3), np.float32)], np.ones(1, np.int64), np.zeros((1, 5)))
    with pytest.raises(TypeCheckError, match="'trajectories'"):
        WeightRecording([np.zeros((2, 3))], np.ones(1, np.int64), np.zeros((1, 5)))


def test_the_fields_of_a_dataclass_fit_each_other():
    with pytest.raises(TypeCheckError, match="'env_steps'"):
        Rollouts(np.zeros((2, 1)), np.zeros((3, 1), np.int64), np.zeros(2), (None, None))


def test_refusals_are_remembered_even_if_they_are_swallowed():
    assert REFUSALS == []
    with pytest.raises(TypeError):
        raw(np.zeros(3, np.float32))
    assert "float32" in "".join(REFUSALS) or "Float64" in "".join(REFUSALS)


def test_nothing_is_checked_where_a_test_says_so():
    with unchecked():
        assert assign_by_rank(FITNESS, np.zeros(3, np.float32)).shape == (3,)
    with pytest.raises(TypeCheckError):
        assign_by_rank(FITNESS, np.zeros(3, np.float32))


def test_the_first_calls_in_a_test_are_checked_and_every_tenth_of_the_later_ones():
    refused = []
    for number in range(1, SAMPLED_CALLS + 50):
        try:
            assign_by_rank(FITNESS, np.zeros(3, np.float32))
        except TypeCheckError:
            refused.append(number)
    assert refused == [*range(1, CHECKED_CALLS + 1), *range(CHECKED_CALLS + 10, SAMPLED_CALLS + 1, 10)]
    begin_test()
    with pytest.raises(TypeCheckError):
        assign_by_rank(FITNESS, np.zeros(3, np.float32))


@pytest.mark.parametrize("subpackage", CHECKED_SUBPACKAGES)
def test_every_subpackage_has_modules_that_are_checked(subpackage):
    names = [name for name in list_checked_modules() if name.split(".")[1] == subpackage]
    functions = [
        value
        for name in names
        for value in vars(import_module(name)).values()
        if getattr(value, "__module__", None) == name and inspect.isfunction(value)
    ]
    assert functions
    assert [each for each in functions if has_arrays(each) and not hasattr(each, "__wrapped__")] == []
