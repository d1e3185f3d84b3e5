"""FireReset: presses FIRE where an Atari game waits for it.

After FireResetEnv in OpenAI Baselines, corrected: what FIRE earns is added to the returned reward, and an episode
that it ends has ended.
"""

from dataclasses import replace

import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import Int

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, Observations, check_integer, has_ended, with_rows
from hebbes.wrappers.opening import Opening


class FireReset(Opening):
    """Takes `fire_action` at the start of an episode and after each lost life; not counted as the policy's env steps.

    A life is lost where `info["lives"]` falls and the episode goes on. The FIRE after it belongs to the same `step`:
    rewards add up, everything else is as after FIRE. What FIRE earns at the start joins the first `step`'s reward. A
    life lost by FIRE itself is followed by another FIRE after the policy's next action.
    """

    def __init__(self, env: BatchEnv, *, fire_action: int = 1) -> None:
        super().__init__(env)
        check_integer("fire_action", fire_action, at_least=0)
        space = env.action_space
        if not isinstance(space, Discrete) or not space.contains(fire_action):
            raise ValueError(
                f"fire_reset, for Atari: fire_action must be in a Discrete action space, got {fire_action} and {space}"
            )
        self._fire = np.array(fire_action, space.dtype)
        self._lives = np.zeros(env.num_copies, np.int64)
        self._owed = np.zeros(env.num_copies)

    def start(self, episode: int) -> Observations:
        """Begins one episode in every copy and returns the observations after FIRE."""
        fired = self.play(episode, self._fire, 1)
        self._lives = _lives(fired).copy()
        self._owed = fired.rewards.copy()
        return fired.observations

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the copies named, and fires in those that lose a life."""
        env_step = super().step(actions, active)
        rewards = env_step.rewards + self._owed[active]
        self._owed[active] = 0
        lives = _lives(env_step)
        lost = np.flatnonzero((lives < self._lives[active]) & ~has_ended(env_step))
        self._lives[active] = lives
        env_step = replace(env_step, rewards=rewards)
        if not lost.size:
            return env_step
        fired = self.env.step(np.repeat(self._fire, lost.size), active[lost])
        return with_rows(env_step, lost, replace(fired, rewards=rewards[lost] + fired.rewards))


def _lives(env_step: EnvStep) -> Int[np.ndarray, " active"]:
    if "lives" not in env_step.info:
        raise ValueError(f"FireReset needs info['lives'] from the environment, got info on {sorted(env_step.info)}")
    return env_step.info["lives"]
