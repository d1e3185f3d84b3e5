"""Metrics of a generation, computed from its rollouts, and joined with those of the part that searches."""

from collections.abc import Mapping
from math import nan

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.engine import Rollouts
from hebbes.training.advice import TrainingError


def compute_return_metrics(rollouts: Rollouts, fitness: Float64[np.ndarray, " members"]) -> dict[str, float]:
    """Metrics of the members' returns, without failed members, and of the mean policy, which is the last member.

    The rank of the mean policy is that of its `fitness`, which the strategy is told. All else is computed from returns.
    """
    returns, mean_policy = rollouts.fitness[:-1], float(rollouts.fitness[-1])
    valid = returns[~np.isnan(returns)]
    mean, std, high, low = (valid.mean(), valid.std(), valid.max(), valid.min()) if len(valid) else (nan,) * 4
    return {
        "return_mean": float(mean),
        "return_std": float(std),
        "return_max": float(high),
        "return_min": float(low),
        "mean_policy_return": mean_policy,
        "mean_policy_rank": nan if np.isnan(mean_policy) else 1 + int((fitness[:-1] > fitness[-1]).sum()),
        "failed_members": int(np.isnan(rollouts.returns[:-1]).any(axis=1).sum()),
    }


def compute_tally_metrics(tallies: Mapping[str, float], rollout_share: float) -> dict[str, float]:
    """Share of saturated actions, NaN without action bounds, and shares of the generation's wall time.

    `rollout_share` is the share of the rollouts. It is divided between policy and simulator as the seconds of all
    threads are.
    """
    policy, simulator = tallies["policy_seconds"], tallies["simulator_seconds"]
    bounded, policy_share = tallies["bounded_actions"], policy / (policy + simulator)
    return {
        "saturated_actions": tallies["saturated_actions"] / bounded if bounded else nan,
        "policy_seconds_share": rollout_share * policy_share,
        "simulator_seconds_share": rollout_share * (1 - policy_share),
        "update_seconds_share": 1 - rollout_share,
    }


def join_metrics(
    before: Mapping[str, float], theirs: Mapping[str, float], after: Mapping[str, float], source: object
) -> dict[str, float]:
    """All metrics in this order; TrainingError if `source`, which gave `theirs`, uses the name of another one."""
    if taken := [name for name in theirs if name in before or name in after]:
        raise TrainingError(f"{source}: the metric {taken[0]!r} needs another name: hebbes has a column of this name")
    return {**before, **theirs, **after}
