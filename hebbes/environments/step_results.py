"""Gathers the results of env steps into arrays, and checks them: a simulator in Python may return anything."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete
from jaxtyping import Shaped

from hebbes.contracts.environment import EnvStep, Space

StepResult: TypeAlias = tuple[Any, Any, Any, Any, Mapping[str, Any]]
"""What `step` of a Gymnasium environment returns."""


def gather_results(results: Sequence[StepResult], space: Space) -> EnvStep:
    """The results in arrays, without info; ValueError or TypeError unless each has five parts in the right shapes.

    Numbers of another dtype are cast. The mask of a masked array is ignored.
    """
    if not all(isinstance(result, tuple) and len(result) == 5 for result in results):
        raise ValueError("step did not return a tuple of five")
    observations, rewards, terminated, truncated, _ = zip(*results, strict=True)
    return EnvStep(
        stack_observations("observation", observations, space),
        _convert_numbers("reward", rewards, (), np.dtype(np.float64)),
        _convert_numbers("terminated", terminated, (), np.dtype(np.bool_)),
        _convert_numbers("truncated", truncated, (), np.dtype(np.bool_)),
        {},
    )


def stack_observations(what: str, observations: Sequence[Any], space: Space) -> Shaped[np.ndarray, "rows ..."]:
    """The observations in one array of the space's dtype; ValueError or TypeError if they do not fit the space."""
    stacked = _convert_numbers(what, observations, space.shape or (), np.dtype(space.dtype))
    allowed = find_listed_range(space)
    if allowed is not None and not ((allowed[0] <= stacked) & (stacked <= allowed[1])).all():
        raise ValueError(f"{what} is not in {space}")
    return stacked


def find_listed_range(space: Space) -> tuple[Any, Any] | None:
    """The least and the greatest of the integers that a space lists, both allowed; None for a Box."""
    match space:
        case Discrete():
            return int(space.start), int(space.start + space.n - 1)
        case MultiDiscrete():
            return space.start, space.start + space.nvec - 1
        case MultiBinary():
            return 0, 1
    return None


def _convert_numbers(
    what: str, values: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype
) -> Shaped[np.ndarray, "..."]:
    array = np.array(values)
    if array.dtype != dtype:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{what} is not of real numbers but of dtype {array.dtype}")
        if array.dtype.kind == "f" and dtype.kind != "f" and not np.isfinite(array).all():
            raise ValueError(f"{what} is not finite")
        if dtype.kind in "iu" and array.size and not np.can_cast(array.dtype, dtype):
            bounds = np.iinfo(dtype)  # beyond them numbers would wrap around
            if array.min() < bounds.min or array.max() > bounds.max:
                raise ValueError(f"{what} has numbers that {dtype} does not hold")
        with np.errstate(over="ignore"):  # what is infinite then fails the member
            array = array.astype(dtype)
    if array.shape[1:] != shape:
        raise ValueError(f"{what} has shape {array.shape[1:]}, not {shape}")
    return array
