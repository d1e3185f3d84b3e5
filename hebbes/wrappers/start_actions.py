"""StartActions: the base of Settle and FireReset, which take actions of their own at the start of every episode."""

from dataclasses import replace

import numpy as np
from jaxtyping import Shaped

from hebbes.contracts.environment import EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper, has_ended, replace_rows, select_envs


class StartActions(BatchWrapper):
    """Plays an opening before the policy acts. Its env steps do not count as the policy's.

    If an episode ends in the opening, its sub-environment is not stepped again. The first `step` then returns the
    opening's last observation, flags, info and fault. Its reward is 0, or NaN if the simulator failed.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ended = np.zeros(self.num_envs, bool)

    def play(self, episode: int, action: Shaped[np.ndarray, "..."], repeats: int) -> EnvStep:
        """Begins an episode, repeats `action` in every sub-environment and returns the last env step of each."""
        super().start(episode)
        actions = np.repeat(action[np.newaxis], self.num_envs, axis=0)
        env_step = self.env.step(actions, np.arange(self.num_envs))
        for _ in range(repeats - 1):
            active = np.flatnonzero(~has_ended(env_step))
            if not active.size:
                break
            env_step = replace_rows(env_step, active, self.env.step(actions[active], active))
        self._ended = has_ended(env_step)
        rewards = np.zeros_like(env_step.rewards)
        rewards[list(env_step.faults)] = np.nan
        self._last_env_step: EnvStep = replace(env_step, rewards=rewards)
        return env_step

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active`, except those whose episode ended in the opening."""
        ended = self._ended[active]
        if not ended.any():
            return self.env.step(actions, active)
        reported = select_envs(self._last_env_step, active)
        running = np.flatnonzero(~ended)
        if not running.size:
            return reported
        return replace_rows(reported, running, self.env.step(actions[running], active[running]))
