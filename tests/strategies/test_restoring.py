import numpy as np
import pytest

from hebbes.strategies.core.restoring import copy_matching_arrays

TEMPLATE = {"mean": np.zeros(3), "generation": np.array(0)}


def test_copies_what_matches():
    state = {"generation": np.array(7), "mean": np.arange(3.0)}
    found = copy_matching_arrays(TEMPLATE, state)
    state["mean"][0] = 9.0
    assert found["mean"].tolist() == [0.0, 1.0, 2.0] and found["generation"] == 7


@pytest.mark.parametrize(
    ("changes", "error", "named"),
    [
        ({"mean": np.zeros(4)}, ValueError, "mean must be float64"),
        ({"mean": np.zeros(3, np.float32)}, ValueError, "mean must be float64"),
        ({"sigma": np.array(1.0)}, ValueError, "sigma"),
    ],
)
def test_refuses_what_does_not(changes, error, named):
    with pytest.raises(error, match=named):
        copy_matching_arrays(TEMPLATE, {**TEMPLATE, **changes})


def test_names_what_is_missing():
    with pytest.raises(KeyError, match="generation"):
        copy_matching_arrays(TEMPLATE, {"mean": np.zeros(3)})
