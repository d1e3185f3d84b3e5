"""The options of a program that declares them in one dataclass, as all but training and `sweep` do."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from hebbes.contracts.errors import say
from hebbes.options.help import print_help_and_exit
from hebbes.options.option_reader import OptionReader
from hebbes.options.texts import split_arguments
from hebbes.training.owners import Owner


def parse_options(owner: type, arguments: Sequence[str], description: str, positional: str = "") -> dict[str, Any]:
    """The options of a dataclass that the command line sets, by field; ValueError for the first mistake.

    Ends the program with status 0 after `--help`. Arguments before the first flag are those of the option `positional`,
    if one is named.
    """
    if positional and arguments and not arguments[0].startswith("-"):
        arguments = [f"--{positional}", *arguments]
    given, options = split_arguments(arguments), Owner("options", "options", (owner,))
    if {"help", "help_all"} & {name for name, _ in given}:
        print_help_and_exit(description, [options], positional=positional)
    if positional and arguments and all(name != positional for name, _ in given) and _is_needed(owner, positional):
        raise ValueError(f"{positional} must be named first, before {arguments[0]}")
    reader = OptionReader([options], may_be_empty=False)
    values = reader.read(given)
    for notice in reader.notices:
        say(notice)
    return {key.removeprefix("options."): value for key, value in values.items()}


def _is_needed(owner: type, name: str) -> bool:
    """Whether an option has no default but an empty list."""
    return any(each.name == name and each.default == () for each in fields(owner))
