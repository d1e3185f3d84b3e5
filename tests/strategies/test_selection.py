import numpy as np

from strategies.selection import best_first


def test_the_fittest_come_first_ties_in_order_and_failed_members_last():
    fitness = np.array([1.0, np.nan, 7.0, -1e9, 7.0, np.nan, 1.0])
    before = fitness.copy()
    assert best_first(fitness).tolist() == [2, 4, 0, 6, 3, 1, 5]
    assert np.array_equal(fitness, before, equal_nan=True)
