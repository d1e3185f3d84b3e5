from math import exp, inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hebbes.hybrids.mean_rules import MEAN_RULES, check_mean_scale, compute_mean_share

RETURNS = st.floats(-1e9, 1e9) | st.sampled_from([nan, inf, -inf])
rules_and_scales = pytest.mark.parametrize(
    ("rule", "c"), [(rule, -30.0 if rule == "baseline_absolute" else 30.0) for rule in MEAN_RULES]
)


@pytest.mark.parametrize(
    ("rule", "f", "f_mu", "c", "share"),
    [
        ("fixed_linear", 110.0, 100.0, 40.0, 0.25),
        ("fixed_linear", 200.0, 100.0, 40.0, 1.0),
        ("fixed_linear", 90.0, 100.0, 40.0, -0.25),
        ("fixed_linear", 0.0, 100.0, 40.0, -1.0),
        ("fixed_sigmoid", 120.0, 100.0, 40.0, 1 / (1 + exp(-0.5))),
        ("fixed_sigmoid", 90.0, 100.0, 40.0, 1 / (1 + exp(0.25))),
        ("fixed_sigmoid", 7.0, 7.0, 40.0, 0.5),
        ("fixed_sigmoid", -1e9, 1e9, 1e-9, 0.0),  # exp would overflow
        ("baseline_absolute", 20.0, -10.0, -40.0, 60 / 90),
        ("baseline_absolute", -50.0, 10.0, -40.0, 0.0),
        ("baseline_absolute", -40.0, 10.0, -40.0, 0.0),
        ("baseline_absolute", 0.0, -50.0, -40.0, 1.0),
        ("baseline_absolute", -40.0, -50.0, -40.0, 1.0),
        ("baseline_absolute", 0.0, -40.0, -40.0, 1.0),
        ("baseline_absolute", -40.0, -40.0, -40.0, 0.5),
        ("baseline_absolute", -50.0, -60.0, -40.0, 0.0),
        ("baseline_relative", 120.0, 100.0, 40.0, 60 / 100),
        ("baseline_relative", 80.0, 100.0, 40.0, 20 / 60),
        ("baseline_relative", 100.0, 100.0, 40.0, 0.5),
        ("baseline_relative", 60.0, 100.0, 40.0, 0.0),
        ("baseline_relative", 59.0, 100.0, 40.0, 0.0),
    ],
)
def test_shares_by_hand(rule, f, f_mu, c, share):
    assert MEAN_RULES[rule](f, f_mu, c) == pytest.approx(share, abs=1e-15)


def test_the_ratio_scales_negative_shares_alone():
    assert compute_mean_share("fixed_linear", 90.0, 100.0, 40.0, negative_ratio=0.2) == pytest.approx(-0.05)
    assert compute_mean_share("fixed_linear", 90.0, 100.0, 40.0, negative_ratio=0.0) == 0
    assert compute_mean_share("fixed_linear", 110.0, 100.0, 40.0, negative_ratio=0.2) == 0.25


@rules_and_scales
@pytest.mark.parametrize("failed", [nan, inf, -inf])
def test_an_individual_that_failed_moves_nothing_and_a_mean_policy_that_failed_is_the_worst(rule, c, failed):
    assert compute_mean_share(rule, failed, 0.0, c, 1.0) == 0
    assert compute_mean_share(rule, failed, nan, c, 1.0) == 0
    assert compute_mean_share(rule, 0.0, failed, c, 1.0) == 1


@rules_and_scales
@given(f=RETURNS, better=RETURNS, f_mu=RETURNS)
def test_shares_are_fractions_that_grow_with_the_return(rule, c, f, better, f_mu):
    share = compute_mean_share(rule, f, f_mu, c, negative_ratio=0.0)
    assert 0 <= share <= 1
    if f <= better < inf:
        assert share <= compute_mean_share(rule, better, f_mu, c, negative_ratio=0.0) + 1e-12


@pytest.mark.parametrize(
    ("rule", "c", "message"),
    [
        ("baseline_relative", None, "mean_scale must be given with mean_rule baseline_relative: it is in units"),
        (
            "baseline_absolute",
            0.0,
            "mean_scale must be < 0 with mean_rule baseline_absolute: it is the baseline, .*, got 0",
        ),
        ("baseline_absolute", 2000.0, "mean_scale must be < 0 .*, got 2000"),
        ("baseline_relative", -40.0, "mean_scale must be > 0 with mean_rule baseline_relative, .*, got -40"),
        ("fixed_linear", 0.0, "mean_scale must be > 0 with mean_rule fixed_linear, because it is a difference"),
        ("fixed_sigmoid", 0.0, "mean_scale must be > 0"),
    ],
)
def test_scales_without_a_meaning_are_refused(rule, c, message):
    with pytest.raises(ValueError, match=message):
        check_mean_scale(rule, c)
