"""Plain values: finite numbers, texts, None, lists and mappings, which files hold as JSON; and plain arrays."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, TypeGuard

import numpy as np


def is_plain_array(value: Any) -> TypeGuard[np.ndarray]:
    """Whether this is an array that is its numbers and nothing more, unlike a masked one, whose mask no file holds."""
    return type(value) in (np.ndarray, np.memmap)


def prefix_arrays(owner: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays with `owner` and a dot before their names."""
    return {f"{owner}.{name}": array for name, array in arrays.items()}


def select_arrays(owner: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin with `owner` and a dot, without both."""
    return {name[len(owner) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{owner}.")}


def make_list(value: Any) -> Any:
    """A list instead of a tuple, else the value itself."""
    return list(value) if isinstance(value, tuple) else value


def make_plain(name: str, value: Any) -> Any:
    """The value as a file gives it back: lists instead of tuples, and keys in alphabetical order.

    So an environment gets the same arguments in training, in a resume and in a test. ValueError, which begins with the
    name, for anything that a file would not give back, such as keys that are no texts.
    """
    match value:
        case Mapping():
            if wrong := [key for key in value if not isinstance(key, str)]:
                raise ValueError(f"{name} must have names for keys, got {wrong[0]!r}")
            return {key: make_plain(name, value[key]) for key in sorted(value)}
        case list() | tuple():
            return [make_plain(name, item) for item in value]
        case float() if isfinite(value):
            return float(value)
        case bool() | int() | str() | None:
            return value
    raise ValueError(f"{name} must hold finite numbers, texts, lists and mappings, got {value!r}")


def find_leaves(tree: Any) -> Iterator[Any]:
    """Every key and every value in a tree of plain values and tuples, except the lists and mappings themselves."""
    waiting = [tree]  # no recursion, because a file may nest them deeply
    while waiting:
        match waiting.pop():
            case dict() as entries:
                waiting += [*entries, *entries.values()]
            case list() | tuple() as items:
                waiting += items
            case leaf:
                yield leaf
