"""Help texts: a line of usage, then the options in groups, by owner."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import MISSING
from typing import NoReturn

from hebbes.recording.standard_output import print_or_exit
from hebbes.registry.former_names import SHORT_OPTIONS
from hebbes.training.owners import AUTO_POLICIES, SEVERAL, OwnedOption, Owner
from hebbes.training.printed_commands import format_command

INDENT = 26
LONGEST_LINE = 120


def print_help_and_exit(
    description: str, owners: Iterable[Owner], footer: Sequence[str] = (), *, positional: str = ""
) -> NoReturn:
    """Prints the help of this program with the options of `owners`, and ends the program with status 0."""
    listed = list(owners)
    arguments = [
        _describe_argument(each) for owner in listed for each in owner.options if each.field.name == positional
    ]
    program = " ".join([format_command(), *arguments])
    print_or_exit(format_help(program, description, listed, footer))
    sys.exit(0)


def _describe_argument(option: OwnedOption) -> str:
    """The usage of an argument: dots for a list, brackets if it may be left out."""
    usage = option.short_name.upper() + " ..." * option.hint[1]
    return usage if option.default in (MISSING, ()) else f"[{usage}]"


def format_help(program: str, description: str, owners: Iterable[Owner], footer: Sequence[str] = ()) -> str:
    """The help of a program with the options of `owners`."""
    width = min(shutil.get_terminal_size().columns, LONGEST_LINE)
    lines = [f"usage: {program} [--OPTION VALUE ...]", "", *textwrap.wrap(description, width), ""]
    for title, options in group_options(owners).items():
        lines.append(f"{title}:")
        for each in options:
            lines += _format_option(each, width)
        lines.append("")
    for line in footer:
        indent = INDENT if line.startswith("-") else 0
        lines += textwrap.wrap(line, max(width, INDENT + 20), subsequent_indent=" " * indent) or [""]
    return "\n".join(lines).rstrip()


def group_options(owners: Iterable[Owner]) -> dict[str, list[OwnedOption]]:
    """Title of each group -> its options. Wrappers, loggers, and the policies of `auto` are one group each."""
    groups: dict[str, list[OwnedOption]] = {}
    listed = list(owners)
    policies = [owner.name for owner in listed if owner.kind == "policy"]
    for owner in listed:
        if owner.kind in SEVERAL:
            title = f"{owner.kind}s"
        elif owner.kind == "policy" and tuple(policies) == AUTO_POLICIES:
            title = f"policy {', '.join(policies)}"
        else:
            title = owner.title
        group = groups.setdefault(title, [])
        own_first = sorted(owner.options, key=lambda each: bool(each.field.kw_only))  # then those of a base
        group += [each for each in own_first if each.key not in {other.key for other in group}]
    return {title: options for title, options in groups.items() if options}


def _format_option(option: OwnedOption, width: int) -> list[str]:
    """The lines of an option: its flag, then what it is for, with choices and default."""
    short = [f"--{name}" for name, current in SHORT_OPTIONS.items() if current == option.short_name]
    flag = f"  {', '.join([f'--{option.short_name}', *short])}"
    lines = textwrap.wrap(describe_option(option), max(20, width - INDENT)) or [""]
    beside = len(flag) < INDENT - 1
    first = flag.ljust(INDENT) + lines.pop(0) if beside else flag
    return [first.rstrip(), *(" " * INDENT + line for line in lines)]


def describe_option(option: OwnedOption) -> str:
    """What an option is for, its choices and its default, in one line."""
    metadata, default = option.field.metadata, format_default(option)
    choices, remarks = metadata.get("choices", ()), [metadata.get("range", "")]
    if default == "on":
        default = f"on; --no_{option.short_name} turns it off"
    remarks.append(f"default: {default}" if default not in ("", "off") else "")
    described = "; ".join(filter(None, remarks))
    parts = metadata.get("help", ""), f"[{', '.join(choices)}]" * bool(choices), f"({described})" * bool(described)
    return " ".join(filter(None, parts))


def format_default(option: OwnedOption) -> str:
    """The default of an option as text; empty if nothing is the default."""
    default = option.default
    if isinstance(default, bool):
        return "on" if default else "off"
    return " ".join(map(str, default)) if isinstance(default, tuple) else "" if default in (None, {}) else str(default)
