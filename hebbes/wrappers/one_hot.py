"""OneHot: a Discrete observation becomes a vector."""

import numpy as np

from hebbes.wrappers.base import Observations, ObservationWrapper
from hebbes.wrappers.spaces import is_discrete, make_box


class OneHot(ObservationWrapper):
    """Discrete observations as float32 vectors of length n: 1 at (observation - start of the space), 0 elsewhere."""

    def __post_init__(self) -> None:
        super().__post_init__()
        space = self.env.observation_space
        if not is_discrete(space):
            raise ValueError(f"one_hot needs Discrete observations, got {space}")
        self._start, self._length = int(space.start), int(space.n)
        self.observation_space = make_box(0.0, 1.0, (self._length,), dtype=np.float32)

    def transform(self, observations: Observations) -> Observations:
        """One vector per observation, in a new array."""
        vectors = np.zeros((len(observations), self._length), np.float32)
        vectors[np.arange(len(observations)), observations - self._start] = 1
        return vectors
