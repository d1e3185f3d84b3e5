"""A wrapper and its arguments, as options, YAML files and policy files name it.

An option names a wrapper alone, `fire_reset`, or with arguments, `early_stop: {negative_streak: 20}`: as a YAML text
on the command line, as an entry of a list in a file. Names are file stems in `wrappers`, `package.module:Class` (or
with a dot for the colon), and the plain names of Gymnasium's own wrappers, such as `TimeLimit`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from rollouts.registry import GYMNASIUM_WRAPPERS

Entry: TypeAlias = str | dict[str, dict[str, Any]]
"""A wrapper as an option holds it: its full name, or a mapping of that one name to the arguments."""


@dataclass(frozen=True)
class WrapperSpec:
    """A wrapper and its options."""

    name: str
    """A file stem in `wrappers`, or "package.module:Class"."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def entry(self) -> Entry:
        """As an option holds it."""
        return {self.name: dict(self.kwargs)} if self.kwargs else self.name


def wrapper_spec(entry: Entry) -> WrapperSpec:
    """The wrapper that an option's entry names."""
    if isinstance(entry, str):
        return WrapperSpec(entry)
    ((name, kwargs),) = entry.items()
    return WrapperSpec(name, kwargs)


def read_wrapper(text: str) -> Entry:
    """The entry that a text of the command line means; ValueError for anything else."""
    try:
        value = yaml.safe_load(text)
        json.dumps(value, allow_nan=False)  # policy files keep it as JSON
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise ValueError(_EXPECTED) from error
    if isinstance(value, str):
        return _full_name(value)
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(_EXPECTED)
    ((name, kwargs),) = value.items()
    if not isinstance(name, str) or not isinstance(kwargs, dict | None) or not all(map(_is_text, kwargs or {})):
        raise ValueError(_EXPECTED)
    return {_full_name(name): kwargs} if kwargs else _full_name(name)


_EXPECTED = "a wrapper is NAME, or 'NAME: {argument: value, ...}'"
_NAME = re.compile(r"[\w.]+(:\w+)?")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _full_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(_EXPECTED)
    if name in GYMNASIUM_WRAPPERS:
        return f"gymnasium.wrappers:{name}"
    module, dot, class_name = name.rpartition(".")
    return f"{module}:{class_name}" if dot and ":" not in name else name
