"""Settle: lets a robot come to rest before its policy acts (40 env steps for AntBullet in Najarro & Risi's code)."""

import numpy as np
from gymnasium.spaces import Box, MultiBinary

from hebbes.contracts.environment import BatchEnv
from hebbes.wrappers.base import Observations, check_integer
from hebbes.wrappers.start_actions import StartActions


class Settle(StartActions):
    """Begins every episode with `num_steps` zero actions and drops their rewards."""

    def __init__(self, env: BatchEnv, *, num_steps: int) -> None:
        super().__init__(env)
        check_integer("num_steps", num_steps, at_least=1)
        space = env.action_space
        self._num_steps, self._zero = num_steps, np.zeros(space.shape or (), np.dtype(space.dtype))
        if not isinstance(space, Box | MultiBinary) or not space.contains(self._zero):
            raise ValueError(
                f"settle_steps needs Box or MultiBinary actions that can be 0, got {space}; leave the option out"
            )

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and returns the observations after the zero actions."""
        return self.play(episode, self._zero, self._num_steps).observations
