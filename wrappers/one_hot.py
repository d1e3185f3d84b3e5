"""OneHot: a numbered observation becomes a vector."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from contracts.environment import BatchEnv
from wrappers.base import Observations, ObservationWrapper


class OneHot(ObservationWrapper):
    """Discrete observations as float32 vectors of length n: 1 at the observation less the space's start, else 0."""

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, Discrete):
            raise ValueError(f"OneHot needs Discrete observations, got {space}")
        self._start = int(space.start)
        self._vectors = np.eye(int(space.n), dtype=np.float32)
        self.observation_space = Box(0.0, 1.0, (int(space.n),), np.float32)

    def transform(self, observations: Observations) -> Observations:
        """One vector an observation, in a fresh array."""
        return self._vectors[observations - self._start]
