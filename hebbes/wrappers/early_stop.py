"""EarlyStop: truncates hopeless episodes.

The rule of Najarro & Risi's code (NeurIPS 2020, arXiv 2007.02686): CarRacing stops after more than 20 negative
rewards in a row. Bullet robots stop after more than 30, which are counted after the first 201 env steps of the policy.
Departure: theirs stops evaluations too, where ours need `--training_wrappers`.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hebbes.contracts.environment import EnvStep
from hebbes.contracts.option import option
from hebbes.wrappers.base import Actions, Active, BatchWrapper, Observations


@dataclass(eq=False, kw_only=True)
class EarlyStop(BatchWrapper):
    """Truncates an episode after more than `negative_streak` negative rewards in a row.

    A reward of zero or more, or NaN, ends the streak. No episode is truncated in its first `grace_steps` env steps.
    Their rewards count for a streak only if `counts_grace`. Then env step `grace_steps + 1` truncates an episode whose
    streak is long enough and goes on in it. An episode that terminates is not truncated too.
    """

    training_only: ClassVar[bool] = True

    negative_streak: int | None = option(
        None,
        "training only: end an episode after more than this many negative rewards in a row",
        range=">= 0",
        flag="early_stop_negative_streak",
    )
    grace_steps: int = option(
        0,
        "env steps at the start of an episode whose rewards early stopping ignores",
        range=">= 0",
        needs={"negative_streak": ()},
        flag="early_stop_grace_steps",
    )
    counts_grace: bool = option(
        False,
        "also count rewards within early_stop_grace_steps, as before 2026-11-22",
        needs={"grace_steps": ()},
        flag="early_stop_counts_grace",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._longest = np.iinfo(np.int64).max if self.negative_streak is None else self.negative_streak
        self._streaks = np.zeros(self.num_envs, np.int64)
        self._env_steps = np.zeros(self.num_envs, np.int64)

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and resets the streaks."""
        self._streaks[:] = 0
        self._env_steps[:] = 0
        return super().start(episode)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` and truncates hopeless episodes."""
        env_step = self.env.step(actions, active)
        self._env_steps[active] += 1
        past_grace = self._env_steps[active] > self.grace_steps
        counted = (env_step.rewards < 0) & (past_grace | self.counts_grace)
        self._streaks[active] = np.where(counted, self._streaks[active] + 1, 0)
        hopeless = past_grace & (self._streaks[active] > self._longest)
        if not np.count_nonzero(hopeless):  # faster than `any`
            return env_step
        return replace(env_step, truncated=env_step.truncated | (hopeless & ~env_step.terminated))
