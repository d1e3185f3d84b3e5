import numpy as np
import pytest

from hebbes.strategies.core.selection import all_tie, compute_tied_share, sort_best_first

NAN = float("nan")


def test_the_fittest_come_first_failed_members_last_and_ties_as_they_are_told_to():
    fitness = np.array([1.0, NAN, 7.0, -1e9, 7.0, NAN, 1.0])
    before = fitness.copy()
    assert sort_best_first(fitness, ties=np.arange(7)).tolist() == [2, 4, 0, 6, 3, 1, 5]
    assert sort_best_first(fitness, ties=np.arange(7)[::-1]).tolist() == [4, 2, 6, 0, 3, 5, 1]
    assert np.array_equal(fitness, before, equal_nan=True)


@pytest.mark.parametrize(
    ("fitness", "tie", "share"),
    [
        ([2.0, 2.0, 2.0, 2.0], True, 1.0),
        ([NAN, NAN], True, 1.0),
        ([-0.0, 0.0], True, 1.0),
        ([2.0, 3.0, 2.0, 3.0], False, 1.0),
        ([NAN, 2.0, 2.0, 1.0], False, 0.5),
    ],
)
def test_ties(fitness, tie, share):
    assert all_tie(np.array(fitness)) is tie and compute_tied_share(np.array(fitness)) == share
