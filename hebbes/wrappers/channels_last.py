"""ChannelsLast: images in PyTorch's order (channels, height, width) become (height, width, channels)."""

import numpy as np

from hebbes.contracts.environment import Space
from hebbes.wrappers.base import Observations, ObservationWrapper
from hebbes.wrappers.spaces import is_box, make_box, require_uint8_images

CHANNELS = (1, 3, 4)
"""Gray, color, and color with opacity or four gray frames."""


class ChannelsLast(ObservationWrapper):
    """(channels, height, width) uint8 -> (height, width, channels) uint8: the first axis becomes the last."""

    def __post_init__(self) -> None:
        super().__post_init__()
        channels, height, width = require_uint8_images(self.env, "channels_last")
        self.observation_space = make_box(0, 255, (height, width, channels), dtype=np.uint8)

    def transform(self, observations: Observations) -> Observations:
        """The same pixels with the channels last, as a view."""
        return np.moveaxis(observations, 1, -1)


def has_channels_first(space: Space) -> bool:
    """Whether observations are treated as images in the order (channels, height, width).

    They are if they are uint8 arrays of three axes and only the first has the length 1, 3 or 4. If the last axis has
    such a length too, it holds the channels.
    """
    if not is_box(space) or space.dtype != np.uint8 or len(space.shape) != 3:
        return False
    return space.shape[0] in CHANNELS and space.shape[2] not in CHANNELS
