"""What simulators get wrong: results of env steps checked, exceptions told in a line, tracebacks shown once."""

import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Space
from jaxtyping import Bool, Float64, Shaped

REASON_LENGTH = 200
"""Characters to a reason at most."""

Result: TypeAlias = tuple[Any, Any, Any, Any, Mapping[str, Any]]
"""What a Gymnasium environment returns from `step`."""

_shown: set[tuple[type[BaseException], str, int | None]] = set()


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


def reason(error: BaseException) -> str:
    """The exception in one short line."""
    try:
        text = str(error)
    except Exception:  # a user's exception may fail at this too
        text = "<its text cannot be had>"
    return f"{type(error).__name__}: {text}".split("\n", 1)[0][:REASON_LENGTH]


def report(error: BaseException) -> str:
    """The exception in one line, then its traceback."""
    return f"{reason(error)}\n{''.join(traceback.format_exception(error))}"


def show_once(what: str, error: BaseException) -> None:
    """Says, with the traceback, the first exception of its type from its line of code in this process."""
    frames = traceback.extract_tb(error.__traceback__)
    origin = (type(error), frames[-1].filename, frames[-1].lineno)
    if origin not in _shown:
        _shown.add(origin)
        say(f"{what}; from here on this is counted, not shown:\n{report(error)}")


def say(text: str) -> None:
    """Prints on standard error at once; never raises, since nobody may be there to read it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)
