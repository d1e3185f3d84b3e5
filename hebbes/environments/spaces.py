"""Spaces: which ones environments may have, and how observations of several parts become one row of numbers.

Box and Discrete observations stay as they are. Dict, Tuple, MultiBinary and MultiDiscrete ones are flattened by
Gymnasium's own functions: the parts of a Dict in its order, Discrete and MultiDiscrete numbers as one-hot vectors.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.spaces.utils import flatdim, flatten, flatten_space
from jaxtyping import Shaped

NUMBERS = Box | Discrete | MultiBinary | MultiDiscrete
"""Spaces of numbers; Dict and Tuple hold such."""

MAX_NUMBERS = 2**24
"""In one observation that is flattened or one-hot: a policy file holds no more weights than this."""

WAY_OUT = "a gymnasium.Wrapper of yours may turn it into one of them: --gymnasium_wrappers package.module:Class"


def check_spaces(environment: str, observation_space: Space, action_space: Space) -> None:
    """Refuses spaces that no policy here can read or act in."""
    _check_observations(environment, observation_space)
    if not isinstance(action_space, NUMBERS):
        raise ValueError(
            f"environment {environment!r} has action space {action_space}; supported are Box, Discrete, MultiBinary "
            f"and MultiDiscrete; {WAY_OUT}"
        )


def _check_observations(environment: str, space: Space) -> None:
    parts = dict(parts_of(space))
    for path, part in parts.items():
        if not isinstance(part, NUMBERS):
            where = "".join(f"[{key!r}]" for key in path)
            raise ValueError(
                f"environment {environment!r} has observation space {part}{where and f' at {where}'}; supported are "
                f"Box, Discrete, MultiBinary and MultiDiscrete, and Dict and Tuple of these; {WAY_OUT}"
            )
    count = flatdim(space) if parts else 0
    if count < 1 or (count > MAX_NUMBERS and not isinstance(space, Box)):
        raise ValueError(
            f"environment {environment!r} has observations of {count} numbers, where each value of a Discrete one "
            f"counts; supported are 1 to {MAX_NUMBERS}; {WAY_OUT}"
        )


def parts_of(space: Space, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Space]]:
    """The spaces within nested Dicts and Tuples, each after the keys that lead to it; () and the space for others."""
    if isinstance(space, Dict | Tuple):
        parts = space.items() if isinstance(space, Dict) else enumerate(space)
        for key, part in parts:
            yield from parts_of(part, (*path, key))
    else:
        yield path, space


def is_flattened(space: Space) -> bool:
    """Whether observations of this space are flattened."""
    return not isinstance(space, Box | Discrete)


def flat_space(space: Space) -> Space:
    """The space of the observations once they are flattened, where they are."""
    return flatten_space(space) if is_flattened(space) else space


def flatten_observation(space: Space, observation: Any) -> Shaped[np.ndarray, " numbers"]:
    """An observation in one row; FloatingPointError where one that should be of whole numbers is not finite."""
    with np.errstate(invalid="raise"):
        return np.asarray(flatten(space, observation))
