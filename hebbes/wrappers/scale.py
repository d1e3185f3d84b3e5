"""Scale: bytes become numbers between 0 and 1."""

import numpy as np
from gymnasium.spaces import Box

from hebbes.contracts.environment import BatchEnv
from hebbes.wrappers.base import Observations, ObservationWrapper


class Scale(ObservationWrapper):
    """uint8 observations divided by 255, as float32."""

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, Box) or space.dtype != np.uint8:
            raise ValueError(f"Scale needs uint8 observations in a Box, got {space}")
        self.observation_space = Box(self.transform(space.low), self.transform(space.high), dtype=np.float32)

    def transform(self, observations: Observations) -> Observations:
        """The nearest float32 to each value over 255."""
        return np.divide(observations, np.float32(255), dtype=np.float32)
