"""Spaces in wrappers: tells what kind a space is, and makes the new ones.

Gymnasium is imported within the functions. So the options of a wrapper can be read without it.
"""

from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np
from jaxtyping import Shaped
from numpy.typing import DTypeLike

from hebbes.contracts.environment import BatchEnv, Space

if TYPE_CHECKING:
    from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

Bound: TypeAlias = float | Shaped[np.ndarray, "..."]


def is_box(space: Space) -> "TypeGuard[Box]":
    """Whether values are arrays within bounds."""
    from gymnasium.spaces import Box

    return isinstance(space, Box)


def is_discrete(space: Space) -> "TypeGuard[Discrete]":
    """Whether values are single integers from a range."""
    from gymnasium.spaces import Discrete

    return isinstance(space, Discrete)


def is_multi_discrete(space: Space) -> "TypeGuard[MultiDiscrete]":
    """Whether values are arrays of integers, each from a range of its own."""
    from gymnasium.spaces import MultiDiscrete

    return isinstance(space, MultiDiscrete)


def is_multi_binary(space: Space) -> "TypeGuard[MultiBinary]":
    """Whether values are arrays of zeros and ones."""
    from gymnasium.spaces import MultiBinary

    return isinstance(space, MultiBinary)


def make_box(low: Bound, high: Bound, shape: tuple[int, ...] | None = None, *, dtype: DTypeLike) -> "Box":
    """The space of arrays between two bounds; `shape` if these are numbers."""
    from gymnasium.spaces import Box

    return Box(low, high, shape, dtype=np.dtype(dtype).type)


def require_float_actions(env: BatchEnv, wrapper: str) -> "Box":
    """The action space; ValueError unless it is a Box of floats."""
    space = env.action_space
    if not is_box(space) or not np.issubdtype(space.dtype, np.floating):
        raise ValueError(f"{wrapper} needs a Box action space of floats, got {space}")
    return space


def require_uint8_images(env: BatchEnv, wrapper: str) -> tuple[int, int, int]:
    """(height, width, channels) of the observations; ValueError unless they are uint8 images."""
    space = env.observation_space
    if not is_box(space) or space.dtype != np.uint8 or len(space.shape) != 3:
        raise ValueError(f"{wrapper} needs uint8 image observations of shape (height, width, channels), got {space}")
    height, width, channels = space.shape
    return height, width, channels
