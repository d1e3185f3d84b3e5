"""Metrics of a generation, by hand."""

import numpy as np
import pytest

from hebbes.contracts.engine import Rollouts
from hebbes.training.generation_metrics import compute_return_metrics, compute_tally_metrics

NAN = float("nan")


def make_rollouts(returns):
    size = np.shape(returns)
    nothing = (None,) * size[0]
    return Rollouts(np.array(returns), np.ones(size, np.int64), np.zeros(size[0]), nothing, nothing, {}, {})


def test_returns_are_those_of_the_members_and_the_mean_policy_is_apart():
    rollouts = make_rollouts([[1.0, 3.0], [4.0, 6.0], [NAN, 9.0], [NAN, NAN], [3.0, 5.0]])
    assert compute_return_metrics(rollouts, np.array([1.0, 2.0, NAN, NAN, 0.0])) == {
        "return_mean": 3.5,
        "return_std": 1.5,
        "return_max": 5.0,
        "return_min": 2.0,
        "mean_policy_return": 4.0,
        "mean_policy_rank": 3,
        "failed_members": 2,
    }


def test_a_mean_policy_that_has_failed_is_none_of_the_members():
    metrics = compute_return_metrics(make_rollouts([[1.0], [2.0], [NAN]]), np.array([1.0, 2.0, NAN]))
    assert (metrics["failed_members"], metrics["return_mean"]) == (0, 1.5)
    assert np.isnan([metrics["mean_policy_return"], metrics["mean_policy_rank"]]).all()


def test_shares_of_time_and_of_saturated_actions():
    tallies = {"policy_seconds": 1.0, "simulator_seconds": 3.0, "saturated_actions": 2.0, "bounded_actions": 8.0}
    assert compute_tally_metrics(tallies, 0.8) == pytest.approx(
        {
            "saturated_actions": 0.25,
            "policy_seconds_share": 0.2,
            "simulator_seconds_share": 0.6,
            "update_seconds_share": 0.2,
        }
    )
