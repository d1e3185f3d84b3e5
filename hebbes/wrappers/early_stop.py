"""EarlyStop: hopeless episodes are cut short.

The rule of Najarro & Risi's code (NeurIPS 2020, arXiv 2007.02686): CarRacing stops after more than 20 negative
rewards in a row. Bullet robots stop after more than 30, and only env steps past the first 201 of the policy count.
"""

from dataclasses import replace

import numpy as np

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper, Observations, check_integer


class EarlyStop(BatchWrapper):
    """Truncates a copy at its first env step after `grace_steps` that ends a streak of over `negative_streak`.

    A streak is a run of negative rewards without a break, the current one included. A reward of zero or more, or NaN,
    ends it. Rewards within the grace belong to no streak unless `counts_grace`, which is how policy files written
    before that option were trained: there, a streak that outgrew `negative_streak` within the grace stops the copy at
    env step `grace_steps + 1`. A copy that has terminated is not truncated as well.
    """

    def __init__(self, env: BatchEnv, *, negative_streak: int, grace_steps: int = 0, counts_grace: bool = True) -> None:
        super().__init__(env)
        check_integer("negative_streak", negative_streak, at_least=0)
        check_integer("grace_steps", grace_steps, at_least=0)
        if not isinstance(counts_grace, bool):
            raise ValueError(f"counts_grace must be true or false, got {counts_grace!r}")
        self._negative_streak = negative_streak
        self._grace_steps = grace_steps
        self._counts_grace = counts_grace
        self._streak = np.zeros(env.num_copies, np.int64)
        self._env_steps = np.zeros(env.num_copies, np.int64)

    def start(self, episode: int) -> Observations:
        """Begins one episode in every copy and forgets the streaks."""
        self._streak[:] = 0
        self._env_steps[:] = 0
        return self.env.start(episode)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the copies named and truncates those whose streak is over."""
        env_step = self.env.step(actions, active)
        self._env_steps[active] += 1
        past_grace = self._env_steps[active] > self._grace_steps
        counted = (env_step.rewards < 0) & (past_grace | self._counts_grace)
        self._streak[active] = np.where(counted, self._streak[active] + 1, 0)
        hopeless = (self._streak[active] > self._negative_streak) & past_grace
        return replace(env_step, truncated=env_step.truncated | (hopeless & ~env_step.terminated))
