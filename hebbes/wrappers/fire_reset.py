"""FireReset: presses FIRE where an Atari game waits for it.

After FireResetEnv in OpenAI Baselines, with two corrections: rewards from FIRE are added to the returned reward, and an
episode may end during FIRE. Departures: action 2 does not follow, and FIRE is pressed after each lost life too.
"""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from jaxtyping import Int

from hebbes.contracts.environment import EnvStep
from hebbes.wrappers.base import Actions, Active, Observations, has_ended, replace_rows
from hebbes.wrappers.spaces import is_discrete
from hebbes.wrappers.start_actions import StartActions

FIRE = 1
"""The action FIRE of Atari games, but for Backgammon and VideoCheckers."""


class FireReset(StartActions):
    """Presses FIRE at the start of an episode and after each lost life; these are not env steps of the policy.

    A life is lost when `info["lives"]` decreases and the episode goes on. The FIRE after it belongs to the same `step`:
    the rewards are added, everything else is as after FIRE. The reward of the FIRE at the start is added to that of the
    first `step`. If FIRE itself loses a life, another FIRE follows after the policy's next action.
    """

    switch: ClassVar[str] = "press FIRE at the start and after every lost life (Atari)"

    def __post_init__(self) -> None:
        super().__post_init__()
        space = self.env.action_space
        if not is_discrete(space) or not space.contains(FIRE):
            raise ValueError(f"fire_reset, for Atari, needs Discrete actions, of which {FIRE} is FIRE, got {space}")
        self._fire = np.array(FIRE, space.dtype)
        self._lives = np.zeros(self.num_envs, np.int64)
        self._pending_rewards = np.zeros(self.num_envs)

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and returns the observations after FIRE."""
        fired = self.play(episode, self._fire, 1)
        self._lives = _read_lives(fired).copy()
        self._pending_rewards = fired.rewards.copy()
        return fired.observations

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` and fires in those that lose a life."""
        env_step = super().step(actions, active)
        rewards = env_step.rewards + self._pending_rewards[active]
        self._pending_rewards[active] = 0
        lives = _read_lives(env_step)
        lost = np.flatnonzero((lives < self._lives[active]) & ~has_ended(env_step))
        self._lives[active] = lives
        env_step = replace(env_step, rewards=rewards)
        if not lost.size:
            return env_step
        fired = self.env.step(np.repeat(self._fire, lost.size), active[lost])
        return replace_rows(env_step, lost, replace(fired, rewards=rewards[lost] + fired.rewards))


def _read_lives(env_step: EnvStep) -> Int[np.ndarray, " active"]:
    if "lives" not in env_step.info:
        raise ValueError(f"fire_reset needs info['lives'] from the environment, got info on {sorted(env_step.info)}")
    return env_step.info["lives"]
