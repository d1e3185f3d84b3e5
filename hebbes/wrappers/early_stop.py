"""EarlyStop: truncates hopeless episodes.

The rule of Najarro & Risi's code (NeurIPS 2020, arXiv 2007.02686): CarRacing stops after more than 20 negative
rewards in a row. Bullet robots stop after more than 30, which are counted after the first 201 env steps of the policy.
"""

from dataclasses import replace

import numpy as np

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper, Observations, check_integer


class EarlyStop(BatchWrapper):
    """Truncates an episode after more than `negative_streak` negative rewards in a row.

    A reward of zero or more, or NaN, ends the streak. No episode is truncated in its first `grace_steps` env steps.
    Their rewards count for a streak only if `counts_grace`. (Policy files without that option were trained so: a streak
    that is long enough within the grace period truncates the episode at env step `grace_steps + 1`.) An episode that
    terminates is not truncated too.
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
        self._streak = np.zeros(env.num_envs, np.int64)
        self._env_steps = np.zeros(env.num_envs, np.int64)

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and resets the streaks."""
        self._streak[:] = 0
        self._env_steps[:] = 0
        return self.env.start(episode)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` and truncates hopeless episodes."""
        env_step = self.env.step(actions, active)
        self._env_steps[active] += 1
        past_grace = self._env_steps[active] > self._grace_steps
        counted = (env_step.rewards < 0) & (past_grace | self._counts_grace)
        self._streak[active] = np.where(counted, self._streak[active] + 1, 0)
        hopeless = (self._streak[active] > self._negative_streak) & past_grace
        return replace(env_step, truncated=env_step.truncated | (hopeless & ~env_step.terminated))
