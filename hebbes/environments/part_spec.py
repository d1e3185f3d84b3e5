"""A wrapper or a logger and its arguments, as options, YAML files and policy files name it.

An option has the name alone, `fire_reset`, or also arguments, `early_stop: {negative_streak: 20}`. This is YAML text on
the command line, and an entry of a list in a file. A name is one of our own (`registry.tables`), a
`package.module:Class` (a dot may replace the colon), or that of one of Gymnasium's own, such as `TimeLimit`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from hebbes.contracts.plain_values import find_leaves, make_plain
from hebbes.contracts.suggestion import suggest_name
from hebbes.contracts.yaml_text import parse_yaml
from hebbes.registry.tables import GYMNASIUM_WRAPPERS, SIMULATOR_WRAPPERS, TABLES

Entry: TypeAlias = str | dict[str, dict[str, Any]]
"""A part as an option holds it: its full name, or a mapping from that name to the arguments."""


@dataclass(frozen=True)
class PartSpec:
    """A wrapper or a logger, and its options."""

    name: str
    """A name in the table of its kind, or "package.module:Class". A class of ours gets its name in the table. The
    package of Gymnasium's is `gymnasium.wrappers`, whatever the module of their code."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Its arguments, as a file gives them back, so that equal parts compare equal."""

    def __post_init__(self) -> None:
        name = re.sub(r"^gymnasium\.wrappers\.\w+:", "gymnasium.wrappers:", self.name)
        object.__setattr__(self, "name", _NAMES_OF_OURS.get(name, name))
        object.__setattr__(self, "kwargs", make_plain(f"arguments of {self.name}", self.kwargs))

    @property
    def entry(self) -> Entry:
        """The part as an option holds it."""
        return {self.name: dict(self.kwargs)} if self.kwargs else self.name


def make_part_spec(entry: Entry) -> PartSpec:
    """The part in an option's entry."""
    if isinstance(entry, str):
        return PartSpec(entry)
    ((name, kwargs),) = entry.items()
    return PartSpec(name, kwargs)


def read_part(text: str) -> Entry:
    """The entry for a text of the command line; ValueError if it is not an entry."""
    try:
        value = parse_yaml(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(_EXPECTED) from error
    if isinstance(value, str):
        return _complete_name(value)
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(_EXPECTED)
    ((name, kwargs),) = value.items()
    if not isinstance(name, str) or not isinstance(kwargs, dict | None):
        raise ValueError(_EXPECTED)
    return {_complete_name(name): make_plain(f"arguments of {name}", kwargs)} if kwargs else _complete_name(name)


LARGEST_ARGUMENT = 4096
"""Limit for the arguments of Gymnasium's wrappers, such as sizes of images, because files may set them."""
LARGEST_STACK = 256
"""Limit for the number of observations in `FrameStackObservation`."""
STATISTICS_WRAPPERS = {f"gymnasium.wrappers:Normalize{what}" for what in ("Observation", "Reward")}
"""Wrappers that keep numbers from one episode to the next: an episode would depend on those before it."""
RENDERING_WRAPPERS = {f"gymnasium.wrappers:{name}" for name in ("RecordVideo", "HumanRendering", "RenderCollection")}
"""Wrappers that show or write rendered images. Simulators do not render in training."""


def check_gymnasium_wrapper(wrapper: PartSpec) -> None:
    """Raises ValueError for a wrapper of Gymnasium that cannot be used: unknown, stateful, rendering or too large."""
    if ":" not in wrapper.name and wrapper.name not in SIMULATOR_WRAPPERS:
        known = (*SIMULATOR_WRAPPERS, *sorted(GYMNASIUM_WRAPPERS))
        hint = suggest_name(wrapper.name, known) or ","
        own = "a class of yours is package.module:Class"
        raise ValueError(f"gymnasium_wrappers: unknown wrapper {wrapper.name!r}{hint} known: {', '.join(known)}; {own}")
    if wrapper.name in STATISTICS_WRAPPERS:
        raise ValueError(
            f"gymnasium_wrappers: {wrapper.name!r} keeps statistics from one episode to the next, so that results "
            "would depend on who plays them; --observation_normalization has those of all members"
        )
    if wrapper.name in RENDERING_WRAPPERS:
        raise ValueError(
            f"gymnasium_wrappers: {wrapper.name!r} needs rendered images, which training does not make: "
            "evaluate with --video or --render"
        )
    if not wrapper.name.startswith("gymnasium.wrappers:"):
        return
    for name, value in wrapper.kwargs.items():
        most = LARGEST_STACK if name == "stack_size" else LARGEST_ARGUMENT
        integers = [leaf for leaf in find_leaves(value) if isinstance(leaf, int)]
        if name != "max_episode_steps" and any(abs(number) > most for number in integers):
            raise ValueError(f"gymnasium_wrappers: {name} of {wrapper.name!r} must be within {most}, got {value}")


_NAMES_OF_OURS = {place: name for kind in ("wrapper", "logger") for name, place in TABLES[kind].items()}
_EXPECTED = "an entry is NAME, or 'NAME: {argument: value, ...}'"
_NAME = re.compile(r"[\w.]+(:\w+)?")


def _complete_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(_EXPECTED)
    if name in GYMNASIUM_WRAPPERS or f"gymnasium.wrappers:{name}" in STATISTICS_WRAPPERS | RENDERING_WRAPPERS:
        return f"gymnasium.wrappers:{name}"
    module, dot, class_name = name.rpartition(".")
    return f"{module}:{class_name}" if dot and ":" not in name else name
