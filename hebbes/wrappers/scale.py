"""Scale: bytes become numbers between 0 and 1."""

import numpy as np

from hebbes.wrappers.base import Observations, ObservationWrapper
from hebbes.wrappers.spaces import is_box, make_box


class Scale(ObservationWrapper):
    """uint8 observations divided by 255, as float32."""

    def __post_init__(self) -> None:
        super().__post_init__()
        space = self.env.observation_space
        if not is_box(space) or space.dtype != np.uint8:
            raise ValueError(f"Scale needs uint8 observations in a Box, got {space}")
        self.observation_space = make_box(self.transform(space.low), self.transform(space.high), dtype=np.float32)

    def transform(self, observations: Observations) -> Observations:
        """The nearest float32 to each value over 255."""
        return np.divide(observations, np.float32(255), dtype=np.float32)
