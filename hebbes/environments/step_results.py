"""Results of env steps, gathered into arrays and checked, because a simulator in Python may return anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Space
from jaxtyping import Bool, Float64, Shaped

Result: TypeAlias = tuple[Any, Any, Any, Any, Mapping[str, Any]]
"""What a Gymnasium environment returns from `step`."""


@dataclass(frozen=True)
class Results:
    """Results of some copies, one row each."""

    observations: Shaped[np.ndarray, "active ..."]
    rewards: Float64[np.ndarray, " active"]
    terminated: Bool[np.ndarray, " active"]
    truncated: Bool[np.ndarray, " active"]
    infos: Sequence[Mapping[str, Any]]


def gathered(results: Sequence[Result], space: Space) -> Results:
    """The results in arrays; ValueError or TypeError unless each has five parts, of the right shapes, of real numbers.

    Numbers of another dtype are cast; of a masked array the data count.
    """
    if not all(isinstance(result, tuple) and len(result) == 5 for result in results):
        raise ValueError("step did not return a tuple of five")
    observations, rewards, terminated, truncated, infos = zip(*results, strict=True)
    return Results(
        stacked("observation", observations, space),
        _numbers("reward", rewards, (), np.dtype(np.float64)),
        _numbers("terminated", terminated, (), np.dtype(np.bool_)),
        _numbers("truncated", truncated, (), np.dtype(np.bool_)),
        infos,
    )


def stacked(what: str, observations: Sequence[Any], space: Space) -> Shaped[np.ndarray, "rows ..."]:
    """Observations in one array of the space's dtype; ValueError or TypeError for what is none."""
    return _numbers(what, observations, space.shape or (), np.dtype(space.dtype))


def _numbers(what: str, values: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype) -> Shaped[np.ndarray, "..."]:
    array = np.array(values)
    if array.dtype != dtype:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{what} is not of real numbers but of dtype {array.dtype}")
        if array.dtype.kind == "f" and dtype.kind != "f" and not np.isfinite(array).all():
            raise ValueError(f"{what} is not finite")
        array = array.astype(dtype)
    if array.shape[1:] != shape:
        raise ValueError(f"{what} has shape {array.shape[1:]}, not {shape}")
    return array
