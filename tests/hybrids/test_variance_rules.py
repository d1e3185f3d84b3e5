import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hebbes.hybrids.variance_rules import MIN_VARIANCE, VARIANCE_RULES, update_variance

NUMBERS = arrays(np.float64, 3, elements=st.floats(-1e6, 1e6))


@pytest.mark.parametrize(
    ("rule", "share", "n"),
    [("fixed", 0.25, 10), ("fixed", 1.0, 10), ("adaptive", 0.25, 3), ("adaptive", 0.8, 1), ("adaptive", 1.0, 1)],
)
def test_windows_by_hand(rule, share, n):
    assert VARIANCE_RULES[rule](share, 10) == n


def test_an_update_by_hand():
    variance = np.array([0.5, 0.5, 1e-5])
    updated = update_variance(variance, np.array([2.0, 0.0, 0.0]), np.array([1.5, 0.0, 0.0]), n=10)
    assert updated == pytest.approx([0.5 + (3.0 - 0.5) / 10, 0.45, MIN_VARIANCE])


@given(later=st.lists(st.floats(-100, 100), max_size=20))
def test_the_adaptive_rule_gives_the_sample_variance_where_the_mean_is_that_of_all_individuals(later):
    values = [-1.0, 1.0, *later]
    mean, variance = np.array([0.0]), np.array([2.0])
    for number, value in enumerate(later, start=3):
        new_mean = mean + (value - mean) / number
        n = VARIANCE_RULES["adaptive"](1 / number, 10)
        variance, mean = update_variance(variance, value - mean, value - new_mean, n), new_mean
    assert variance == pytest.approx([np.var(values, ddof=1)])


@pytest.mark.parametrize("rule", VARIANCE_RULES)
@given(variance=arrays(np.float64, 3, elements=st.floats(1e-5, 1e6)), step=NUMBERS, share=st.floats(1e-3, 1))
def test_the_variance_stays_above_its_floor(rule, variance, step, share):
    updated = update_variance(variance, step, (1 - share) * step, VARIANCE_RULES[rule](share, 10))
    assert (updated >= MIN_VARIANCE).all()
