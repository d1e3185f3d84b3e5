"""Options as texts: splits a command line into options, and reads the value of each.

Options from YAML files and from Python are turned into the same texts, so that every value is read and checked once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import yaml

from hebbes.contracts.option import check_value, describe_type
from hebbes.contracts.yaml_text import format_yaml_line, parse_yaml
from hebbes.training.owners import OwnedOption

GivenOption: TypeAlias = tuple[str, list[str]]
"""The name of an option, as its user wrote it, and the texts of its value."""


LETTERS = {"-h": "help", "-o": "output"}
"""Flags of one letter -> the options that they stand for."""


def split_arguments(arguments: Sequence[str]) -> list[GivenOption]:
    """The options of a command line, `--name value value` or `--name=value`, with underscores for dashes in names.

    ValueError for a text that belongs to no option.
    """
    found: list[GivenOption] = []
    for argument in arguments:
        if argument in LETTERS:
            found.append((LETTERS[argument], []))
        elif argument.startswith("--") and len(argument) > 2:
            name, equals, value = argument[2:].partition("=")
            found.append((name.replace("-", "_"), [value] if equals else []))
        elif found:
            found[-1][1].append(argument)
        else:
            raise ValueError(f"unexpected {argument!r}: options are written --name value")
    return found


def format_options(options: Mapping[str, Any]) -> list[GivenOption]:
    """Options with values, from YAML or Python, as the texts that a command line would have."""
    return [(str(name).replace("-", "_"), _format_texts(value, str(name))) for name, value in options.items()]


def _format_texts(value: Any, name: str) -> list[str]:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_format_text(item, name) for item in value]
    return [_format_text(value, name)]


def _format_text(value: Any, name: str) -> str:
    if isinstance(value, Mapping):
        try:
            return format_yaml_line(_to_plain(value))
        except yaml.YAMLError as error:
            raise ValueError(f"{name} must hold numbers, texts, lists and mappings, got {value!r}") from error
    if isinstance(value, bytes):
        raise ValueError(f"{name} cannot be bytes, got {value!r}")
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)


def _to_plain(value: Any) -> Any:
    """The value without tuples and NumPy's types, also in mappings and lists."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _to_plain(item) for key, item in value.items()}
    return [_to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def read_texts(option: OwnedOption, texts: Sequence[str], *, name: str = "", may_be_empty: bool = True) -> Any:
    """The checked value of an option; ValueError, which begins with its name, if the texts are none.

    Args:
        option: what is read.
        texts: none for an on/off option that is on; one for most others; any number for a list.
        name: what messages call the option; its short name if empty.
        may_be_empty: whether a list that cannot be `none` may be empty.
    """
    metadata, name = option.field.metadata, name or option.short_name
    kind, is_list, is_optional = option.hint
    if kind is bool and not texts:
        return True
    # where "none" is one of the choices, it stays a text
    if [text.lower() for text in texts] == ["none"] and "none" not in metadata.get("choices", ()):
        if is_optional:
            return None
        if kind is str and not is_list and not metadata.get("read"):
            raise ValueError(f"{name} cannot be none")
    if read_part := metadata.get("commas"):
        texts = [read_part(part) for text in texts for part in text.split(",")]
    if not texts and not (is_list and (may_be_empty or is_optional)):
        raise ValueError(f"{name} needs a value")
    if len(texts) > 1 and not is_list:
        raise ValueError(f"{name} takes one value, got {' '.join(texts)}")
    items = [_read_text(kind, text, metadata.get("read"), name) for text in texts]
    return check_value(option.declared_in, option.field, tuple(items) if is_list else items[0], name)


def _read_text(kind: Any, text: str, read: Callable[[str], Any] | None, name: str) -> Any:
    """One value of a type, or as the option's own function `read` reads it."""
    if read is not None:
        try:
            return read(text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}; got {text!r}") from error
    try:
        return _READERS.get(kind, str)(text)
    except (ValueError, KeyError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(f"{name} must be {describe_type(kind)}, got {text!r}") from error


def _read_mapping(text: str) -> dict[str, Any]:
    value = parse_yaml(text)
    if not isinstance(value, dict):
        raise ValueError(text)
    return value


def _read_int(text: str) -> int:
    """The whole number, which may also be written as 1e6."""
    try:
        return int(text)
    except ValueError:
        if not (number := float(text)).is_integer():
            raise
        return int(number)


_READERS: dict[Any, Callable[[str], Any]] = {
    int: _read_int,
    float: float,
    dict: _read_mapping,
    bool: lambda text: {"true": True, "false": False}[text.lower()],
}
"""Type of a value -> what reads it from a text; other types keep the text."""
