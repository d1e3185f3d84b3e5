"""The loop of EarlyStop. A dozen calls of NumPy would take longer than the work on so few numbers. It keeps the GIL."""

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64

from hebbes.compilation import njit


@njit(cache=True)
def find_hopeless(
    active: Int[np.ndarray, " active"],
    rewards: Float64[np.ndarray, " active"],
    longest: int,
    grace_steps: int,
    counts_grace: bool,
    env_steps: Int64[np.ndarray, " envs"],
    streaks: Int64[np.ndarray, " envs"],
) -> Bool[np.ndarray, " active"]:
    """Counts this env step and its negative rewards, and returns which streaks are longer than `longest` now."""
    hopeless = np.empty(len(active), np.bool_)
    for row, env in enumerate(active):
        env_steps[env] += 1
        past_grace = env_steps[env] > grace_steps
        streaks[env] = streaks[env] + 1 if rewards[row] < 0 and (past_grace or counts_grace) else 0
        hopeless[row] = past_grace and streaks[env] > longest
    return hopeless
