"""Figures of a generation for the metrics, from its rollouts."""

from collections.abc import Mapping
from math import nan

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.engine import Rollouts


def return_figures(rollouts: Rollouts, fitness: Float64[np.ndarray, " members"]) -> dict[str, float]:
    """Figures of the perturbed members, failed ones left out, and of the unperturbed one, which comes last.

    Its rank is by `fitness`, which is what the strategy is told; the rest are returns.
    """
    returns, unperturbed = rollouts.fitness[:-1], float(rollouts.fitness[-1])
    valid = returns[~np.isnan(returns)]
    mean, std, high, low = (valid.mean(), valid.std(), valid.max(), valid.min()) if len(valid) else (nan,) * 4
    return {
        "return_mean": float(mean),
        "return_std": float(std),
        "return_max": float(high),
        "return_min": float(low),
        "unperturbed_return": unperturbed,
        "unperturbed_rank": nan if np.isnan(unperturbed) else 1 + int((fitness[:-1] > fitness[-1]).sum()),
        "failed_members": int(np.isnan(rollouts.returns[:-1]).any(axis=1).sum()),
    }


def tally_figures(tallies: Mapping[str, float], rollout_share: float) -> dict[str, float]:
    """Share of saturated actions, NaN where there are no bounds; shares of the generation's wall time.

    `rollout_share` is that of the rollouts, which is split as the seconds of all threads are.
    """
    policy, simulator = tallies["policy_seconds"], tallies["simulator_seconds"]
    bounded, policy_share = tallies["bounded_actions"], policy / (policy + simulator)
    return {
        "saturated_actions": tallies["saturated_actions"] / bounded if bounded else nan,
        "policy_seconds_share": rollout_share * policy_share,
        "simulator_seconds_share": rollout_share * (1 - policy_share),
        "update_seconds_share": 1 - rollout_share,
    }
