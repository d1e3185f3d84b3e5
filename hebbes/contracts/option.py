"""Options: fields of dataclasses that have a help text. Each is a flag of the command line and a key of YAML files."""

from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields
from typing import Any


def option(
    default: Any,
    text: str,
    *,
    choices: tuple[str, ...] = (),
    flag: str | None = None,
    commas: Callable[[str], str] | None = None,
    read: Callable[[str], Any] | None = None,
    needs: Mapping[str, tuple[Any, ...]] | None = None,
) -> Any:
    """A dataclass field with its help text.

    Args:
        default: the field's default; a dict is copied for each instance.
        text: the help text.
        choices: the values that are allowed; empty: any.
        flag: the flag's name, if it is not a valid field name.
        commas: if given, commas separate the items of a list too, and this function reads each item.
        read: turns a text into a value, if the field's type cannot.
        needs: as in `hebbes.training.unused_options`.
    """
    metadata = {"help": text, "choices": choices, "flag": flag, "commas": commas, "read": read, "needs": needs or {}}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def get_flag_name(field_: Field) -> str:
    """The flag and YAML key of a field."""
    return field_.metadata.get("flag") or field_.name


def map_flags(owner: type) -> dict[str, str]:
    """Flag -> field name, for every option of a dataclass."""
    return {get_flag_name(option): option.name for option in fields(owner) if "help" in option.metadata}
