"""Spaces: which ones environments may have, and how observations with several parts become one row of numbers.

Box and Discrete observations stay as they are. Dict, Tuple, MultiBinary and MultiDiscrete ones are flattened by
Gymnasium's own functions. The parts of a Dict keep its order. Discrete and MultiDiscrete parts become one-hot.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.spaces.utils import flatdim, flatten, flatten_space
from jaxtyping import Shaped

from hebbes.environments.step_results import stack_observations

NUMERIC_SPACES = Box | Discrete | MultiBinary | MultiDiscrete
"""Spaces whose values are arrays of numbers."""

MAX_NUMBERS = 2**24
"""Limit for one flattened or one-hot observation: a policy file holds no more weights than this."""

WAY_OUT = "a gymnasium.Wrapper of yours may turn it into one of them: --gymnasium_wrappers package.module:Class"


def check_spaces(environment: str, observation_space: Space, action_space: Space) -> None:
    """Raises ValueError for spaces that no policy here can observe or act in."""
    _check_observations(environment, observation_space)
    if not isinstance(action_space, NUMERIC_SPACES):
        raise ValueError(
            f"environment {environment!r} has action space {action_space}; supported are Box, Discrete, MultiBinary "
            f"and MultiDiscrete; {WAY_OUT}"
        )


def _check_observations(environment: str, space: Space) -> None:
    parts = dict(iterate_parts(space))
    for path, part in parts.items():
        if not isinstance(part, NUMERIC_SPACES):
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


def iterate_parts(space: Space, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Space]]:
    """(path of keys, space) for every part of nested Dicts and Tuples; ((), space) for any other space."""
    if isinstance(space, Dict | Tuple):
        parts = space.items() if isinstance(space, Dict) else enumerate(space)
        for key, part in parts:
            yield from iterate_parts(part, (*path, key))
    else:
        yield path, space


def is_flattened(space: Space) -> bool:
    """Whether observations of this space are flattened."""
    return not isinstance(space, Box | Discrete)


def make_flat_space(space: Space) -> Space:
    """The space of the flattened observations; the space itself if they are not flattened."""
    return flatten_space(space) if is_flattened(space) else space


def flatten_observation(space: Space, observation: Any) -> Shaped[np.ndarray, " numbers"]:
    """The observation, whose parts fit the space, as one row."""
    return np.asarray(flatten(space, observation))


def check_and_flatten(space: Space, observation: Any) -> Shaped[np.ndarray, " numbers"]:
    """The observation as one row; an error of any kind if its parts do not fit the space."""
    return flatten_observation(space, _read_parts(space, observation))


def _describe_parts(observation: Any) -> str:
    """What an observation has instead of the parts of its space."""
    if isinstance(observation, Mapping):
        return ", ".join(map(str, observation)) or "none"
    return str(len(observation)) if isinstance(observation, tuple | list) else type(observation).__name__


def _read_parts(space: Space, observation: Any) -> Any:
    """The observation with its parts as arrays that fit their spaces."""
    if isinstance(space, Dict):
        if not isinstance(observation, Mapping) or space.keys() - observation.keys():
            raise ValueError(
                f"observation must have the parts {', '.join(map(str, space))}, got {_describe_parts(observation)}"
            )
        return {key: _read_parts(part, observation[key]) for key, part in space.items()}
    if isinstance(space, Tuple):
        if not isinstance(observation, tuple | list | np.ndarray) or len(observation) != len(space):
            raise ValueError(f"observation must have {len(space)} parts, got {_describe_parts(observation)}")
        return tuple(_read_parts(part, each) for part, each in zip(space, observation, strict=True))
    return stack_observations("observation", [observation], space)[0]
