"""Opening: what Settle and FireReset share, actions of the wrapper's own at the start of every episode."""

from dataclasses import replace

import numpy as np
from jaxtyping import Shaped

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper, has_ended, take_copies, with_rows


class Opening(BatchWrapper):
    """Plays an opening before the policy acts; its env steps are not counted as the policy's.

    A copy whose episode ends in the opening is not stepped inside again: its first `step` returns the opening's last
    observation, flags, info and fault, and no reward, or NaN if its simulator failed.
    """

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        self._ended = np.zeros(env.num_copies, bool)
        self._opened: EnvStep | None = None

    def play(self, episode: int, action: Shaped[np.ndarray, "..."], repeats: int) -> EnvStep:
        """Begins an episode and repeats `action` in every copy; returns the last env step of each, reward included."""
        self.env.start(episode)
        actions = np.repeat(action[np.newaxis], self.num_copies, axis=0)
        opened = self.env.step(actions, np.arange(self.num_copies))
        for _ in range(repeats - 1):
            active = np.flatnonzero(~has_ended(opened))
            if not active.size:
                break
            opened = with_rows(opened, active, self.env.step(actions[active], active))
        self._ended = has_ended(opened)
        rewards = np.zeros_like(opened.rewards)
        rewards[list(opened.faults)] = np.nan
        self._opened = replace(opened, rewards=rewards)
        return opened

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the copies named, save those whose episode ended in the opening."""
        ended = self._ended[active]
        if self._opened is None or not ended.any():
            return self.env.step(actions, active)
        reported = take_copies(self._opened, active)
        going = np.flatnonzero(~ended)
        if not going.size:
            return reported
        return with_rows(reported, going, self.env.step(actions[going], active[going]))
