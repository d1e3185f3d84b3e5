"""FrameStack: a policy sees the last few observations at once."""

from dataclasses import replace

import numpy as np
from gymnasium.spaces import Box

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper, Observations, check_integer

MAX_FRAMES = 256
"""Far more than any policy needs; the bounds of the observations alone would fill the memory with many more."""


class FrameStack(BatchWrapper):
    """Joins the last `num_frames` observations, oldest first, along the last axis: channels of an image, or a vector.

    At the start the first observation stands in for those before it. Stacked images are indexed
    (height, width, channels) but lie in memory channels first, because that order costs the fewest copies.
    """

    def __init__(self, env: BatchEnv, *, num_frames: int) -> None:
        super().__init__(env)
        check_integer("num_frames", num_frames, at_least=1, at_most=MAX_FRAMES)
        space = env.observation_space
        if not isinstance(space, Box) or len(space.shape) not in (1, 3):
            raise ValueError(f"FrameStack needs vectors or images of shape (height, width, channels), got {space}")
        low, high = (np.concatenate([bound] * num_frames, axis=-1) for bound in (space.low, space.high))
        self.observation_space = Box(low, high, dtype=space.dtype.type)
        *image, channels = space.shape
        self._frames = np.zeros((env.num_copies, num_frames, channels, *image), space.dtype)
        self._oldest = np.zeros(env.num_copies, np.int64)

    def start(self, episode: int) -> Observations:
        """Begins one episode in every copy and returns the first observations, each repeated."""
        self._frames[:] = np.moveaxis(self.env.start(episode), -1, 1)[:, np.newaxis]
        return self._stacked(np.arange(self.num_copies))

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the copies named; each one's oldest frame makes room for the newest."""
        env_step = self.env.step(actions, active)
        oldest = self._oldest[active]
        self._frames[active, oldest] = np.moveaxis(env_step.observations, -1, 1)
        self._oldest[active] = (oldest + 1) % self._frames.shape[1]
        return replace(env_step, observations=self._stacked(active))

    def _stacked(self, active: Active) -> Observations:
        num_frames, channels, *image = self._frames.shape[1:]
        order = (self._oldest[active, np.newaxis] + np.arange(num_frames)) % num_frames
        frames = self._frames[active[:, np.newaxis], order]
        return np.moveaxis(frames.reshape(len(active), num_frames * channels, *image), 1, -1)
