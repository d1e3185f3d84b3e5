"""A wrapper and its arguments, as options, YAML files and policy files name it.

An option names a wrapper alone, `fire_reset`, or with arguments, `early_stop: {negative_streak: 20}`: as a YAML text
on the command line, as an entry of a list in a file. Names are file stems in `wrappers`, `package.module:Class` (or
with a dot for the colon), and the plain names of Gymnasium's own wrappers, such as `TimeLimit`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from hebbes.registry.tables import GYMNASIUM_WRAPPERS

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


LARGEST_ARGUMENT = 4096
"""In a wrapper of Gymnasium's, whose arguments a file may name: sizes of images, numbers of bins and of repeats."""
LARGEST_STACK = 256
"""Observations in `FrameStackObservation`."""
KEEPS_STATISTICS = {f"gymnasium.wrappers:Normalize{what}" for what in ("Observation", "Reward")}
"""Wrappers whose numbers go on from one episode to the next, so that an episode depends on what was played before."""


DRAWS = {f"gymnasium.wrappers:{name}" for name in ("RecordVideo", "HumanRendering", "RenderCollection")}
"""Wrappers that show or write what a simulator draws, which training does not let it do."""


def check_wrapper(option: str, wrapper: WrapperSpec) -> None:
    """Refuses wrappers of Gymnasium that make episodes depend on each other, or that would take the memory for it."""
    if wrapper.name in KEEPS_STATISTICS:
        raise ValueError(
            f"{option}: {wrapper.name!r} keeps statistics from one episode to the next, so that results would depend "
            "on who plays them; --observation_normalization has those of all members"
        )
    if wrapper.name in DRAWS:
        raise ValueError(
            f"{option}: {wrapper.name!r} needs drawings, which evaluations alone make: use --video or --render there"
        )
    if not wrapper.name.startswith("gymnasium.wrappers:"):
        return
    for name, value in wrapper.kwargs.items():
        most = LARGEST_STACK if name == "stack_size" else LARGEST_ARGUMENT
        if name != "max_episode_steps" and any(abs(number) > most for number in _integers(value)):
            raise ValueError(f"{option}: {name} of {wrapper.name!r} must be within {most}, got {value}")


def _integers(value: Any) -> Iterator[int]:
    """The integers in a tree of JSON values."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as entries:
                waiting += entries.values()
            case list() | tuple() as items:
                waiting += items
            case int() as number:
                yield number


_EXPECTED = "a wrapper is NAME, or 'NAME: {argument: value, ...}'"
_NAME = re.compile(r"[\w.]+(:\w+)?")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _full_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(_EXPECTED)
    if name in GYMNASIUM_WRAPPERS or f"gymnasium.wrappers:{name}" in KEEPS_STATISTICS | DRAWS:
        return f"gymnasium.wrappers:{name}"
    module, dot, class_name = name.rpartition(".")
    return f"{module}:{class_name}" if dot and ":" not in name else name
