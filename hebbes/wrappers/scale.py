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
            raise ValueError(f"scale needs uint8 observations in a Box, got {space}")
        from hebbes.wrappers.kernels.scaling import scale_bytes

        self._scale = scale_bytes
        self.observation_space = make_box(self.transform(space.low), self.transform(space.high), dtype=np.float32)

    def transform(self, observations: Observations) -> Observations:
        """The nearest float32 to each value over 255."""
        scaled = np.empty(observations.shape, np.float32)
        self._scale(np.ascontiguousarray(observations).ravel(), scaled.reshape(-1))
        return scaled
