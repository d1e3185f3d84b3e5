"""Help texts: a line of usage, then the options in groups, by owner."""

import shutil
import textwrap
from collections.abc import Iterable, Sequence

from hebbes.contracts.option import get_hints, split_hint
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
        lines += textwrap.wrap(_format_title(kind, titles[kind]), width)
        for each in options:
            lines += _format_option(each, width)
        lines.append("")
    for line in footer:
        indent = INDENT if line.startswith("-") else 0
        lines += textwrap.wrap(line, max(width, INDENT + 20), subsequent_indent=" " * indent) or [""]
    return "\n".join(lines).rstrip()


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
    metadata, default = option.field.metadata, option.default
    parts = [metadata.get("help", "")]
    if choices := metadata.get("choices"):
        parts.append(f"[{', '.join(choices)}]")
    if split_hint(get_hints(option.declared_in)[option.field.name])[0] is bool:
        parts.append(f"(default: on; --no_{option.short_name} turns it off)" if default else "")
    elif default not in (None, (), "", {}):
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
        parts.append(f"(default: {shown})")
    return " ".join(filter(None, parts))
