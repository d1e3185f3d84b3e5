"""Settle: a robot comes to rest before its policy acts (40 env steps for AntBullet in Najarro & Risi's code)."""

import numpy as np
from gymnasium.spaces import Box

from contracts.environment import BatchEnv
from wrappers.base import Observations, check_integer
from wrappers.opening import Opening


class Settle(Opening):
    """Begins every episode with `num_steps` zero actions, whose rewards are thrown away."""

    def __init__(self, env: BatchEnv, *, num_steps: int) -> None:
        super().__init__(env)
        check_integer("num_steps", num_steps, at_least=1)
        space = env.action_space
        if not isinstance(space, Box) or not space.contains(np.zeros(space.shape, space.dtype)):
            raise ValueError(f"Settle needs a Box action space with 0 in its bounds, got {space}")
        self._num_steps = num_steps
        self._zero = np.zeros(space.shape, space.dtype)

    def start(self, episode: int) -> Observations:
        """Begins one episode in every copy and returns the observations once settled."""
        return self.play(episode, self._zero, self._num_steps).observations
