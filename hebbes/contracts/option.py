"""An option: a field of a dataclass that has a help text; it is a flag of the command line and a key of a YAML file."""

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
    """A field with its help; `flag` where the flag's name is no valid field name.

    `commas` where they, too, part a list: it reads each part. `read` makes a value of each text, where the field's type
    does not. `needs` is as in `hebbes.training.unused_options`.
    """
    metadata = {"help": text, "choices": choices, "flag": flag, "commas": commas, "read": read, "needs": needs or {}}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def flag_name(field_: Field) -> str:
    """The flag and YAML key of a field."""
    return field_.metadata.get("flag") or field_.name


def flags_of(owner: type) -> dict[str, str]:
    """Flag -> attribute, of every option of a dataclass."""
    return {flag_name(option): option.name for option in fields(owner) if "help" in option.metadata}
