"""Help texts: a line of usage, then the options in groups, by owner."""

import shutil
import textwrap
from collections.abc import Iterable, Sequence

from hebbes.registry.former_names import SHORT_OPTIONS
from hebbes.training.owners import SEVERAL, OwnedOption, Owner

INDENT = 26
LONGEST_LINE = 120


def format_help(program: str, description: str, owners: Iterable[Owner], footer: Sequence[str] = ()) -> str:
    """The help of a program with the options of `owners`; options that owners of one kind share are shown once."""
    width = min(shutil.get_terminal_size().columns, LONGEST_LINE)
    lines = [f"usage: {program} [--OPTION VALUE ...]", "", *textwrap.wrap(description, width), ""]
    groups: dict[str, list[OwnedOption]] = {}
    titles: dict[str, list[str]] = {}
    for owner in owners:
        titles.setdefault(owner.kind, []).append(owner.name)
        shown = groups.setdefault(owner.kind, [])
        keys = {each.key for each in shown}
        shown += [each for each in owner.options if each.key not in keys]
    for kind, options in groups.items():
        lines.append(_format_title(kind, titles[kind]))
        for each in options:
            lines += _format_option(each, width)
        lines.append("")
    return "\n".join([*lines, *footer]).rstrip()


def _format_title(kind: str, names: Sequence[str]) -> str:
    if kind in SEVERAL:
        return f"{kind}s:"
    return f"{kind}:" if list(names) == [kind] else f"{kind} {', '.join(names)}:"


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
