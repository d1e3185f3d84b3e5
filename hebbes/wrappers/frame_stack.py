"""FrameStack: a policy sees the last few observations at once."""

from dataclasses import dataclass, replace

import numpy as np

from hebbes.contracts.environment import EnvStep
from hebbes.contracts.option import option
from hebbes.wrappers.base import Actions, Active, BatchWrapper, Observations
from hebbes.wrappers.channels_last import CHANNELS
from hebbes.wrappers.spaces import is_box, make_box

MAX_FRAMES = 256
"""Far more than any policy needs. With many more, even the bounds of the observation space would fill the memory."""


@dataclass(eq=False, kw_only=True)
class FrameStack(BatchWrapper):
    """Joins the last `num_frames` observations along the last axis (an image's channels, or a vector), oldest first.

    At the start, the first observation is repeated. Stacked images are indexed (height, width, channels) but lie in
    memory with the channels first, because that needs the fewest copies.
    """

    num_frames: int = option(
        1,
        "number of latest observations that the policy sees, the newest last",
        range=f"in [1, {MAX_FRAMES}]",
        flag="frame_stack",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        space = self.env.observation_space
        if not is_box(space) or not (len(space.shape) == 1 or _is_image(space.shape, space.dtype)):
            raise ValueError(f"frame_stack needs vectors or images of shape (height, width, channels), got {space}")
        low, high = (np.concatenate([bound] * self.num_frames, axis=-1) for bound in (space.low, space.high))
        self.observation_space = make_box(low, high, dtype=space.dtype)
        *image, channels = space.shape
        self._frames = np.zeros((self.num_envs, self.num_frames, channels, *image), space.dtype)
        self._oldest = np.zeros(self.num_envs, np.int64)

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and returns the first observations, each repeated."""
        self._frames[:] = np.moveaxis(super().start(episode), -1, 1)[:, np.newaxis]
        return self._stack_frames(np.arange(self.num_envs))

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active`. The newest frame replaces the oldest."""
        env_step = self.env.step(actions, active)
        oldest = self._oldest[active]
        self._frames[active, oldest] = np.moveaxis(env_step.observations, -1, 1)
        self._oldest[active] = (oldest + 1) % self._frames.shape[1]
        return replace(env_step, observations=self._stack_frames(active))

    def _stack_frames(self, active: Active) -> Observations:
        num_frames, channels, *image = self._frames.shape[1:]
        order = (self._oldest[active, np.newaxis] + np.arange(num_frames)) % num_frames
        frames = self._frames[active[:, np.newaxis], order]
        return np.moveaxis(frames.reshape(len(active), num_frames * channels, *image), 1, -1)


def _is_image(shape: tuple[int, ...], dtype: np.dtype) -> bool:
    """Whether arrays of this shape are images whose channels come last, as far as one can tell."""
    return len(shape) == 3 and (dtype == np.uint8 or shape[-1] in CHANNELS)
