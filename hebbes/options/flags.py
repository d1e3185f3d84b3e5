"""Flags, read by argparse: one for every field of a dataclass that has a help text.

Why argparse, and no library that fills dataclasses: it can return only the flags that were given. Precedence is then
one merge of dictionaries, and the keys of a YAML file are checked by turning them into flags.
"""

import sys
from argparse import SUPPRESS, Action, ArgumentError, ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from math import inf
from types import NoneType
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

import yaml

from hebbes.contracts.option import get_flag_name, map_flags
from hebbes.options.suggestions import suggest_flags
from hebbes.registry.former_names import FORMER_OPTIONS, SHORT_OPTIONS, find_current_option_name
from hebbes.registry.lookup import find_class, list_names, suggest_name


class OneLineParser(ArgumentParser):
    """Reports a mistake in one line, suggests the nearest flag, and exits with status 2."""

    def __init__(self, strategy: str = "", **settings: Any):
        super().__init__(allow_abbrev=False, **settings)
        self.source, self.strategy = "", strategy
        self._notices: set[str] = set()

    def error(self, message: str) -> NoReturn:
        """Prints one line and exits."""
        self.exit(2, f"{self.prog}: error: {self.source}{' '.join(message.split())}\n")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            allowed = list(map(str, action.choices))
            hint = suggest_name(str(value), allowed) or ","
            raise ArgumentError(action, f"got {value!r}{hint} allowed: {', '.join(allowed)}")

    def parse(self, arguments: Sequence[str], source: str = "") -> dict[str, Any]:
        """The given options, by name; `--max-env-steps` is read as `--max_env_steps`."""
        self.source = f"{source}: " if source else ""
        found, unknown = self.parse_known_args([self._rename_flag(replace_dashes(argument)) for argument in arguments])
        if unknown:
            self.error(self._explain_unknown(unknown[0]))
        self.source = ""
        return {name: convert_value(value) for name, value in vars(found).items()}

    def _rename_flag(self, argument: str) -> str:
        """The argument with the current name of its flag; prints a notice if it had an earlier name."""
        flag, equals, value = argument.partition("=")
        prefix = next((prefix for prefix in ("--no_", "--") if flag.startswith(prefix)), "")
        former = flag.removeprefix(prefix)
        name = find_current_option_name(former, self._list_flag_names())
        if not prefix or name == former:
            return argument
        notice = f"{self.source}--{former} is now called --{name}"
        if notice not in self._notices:
            self._notices.add(notice)
            print(notice, file=sys.stderr)
        return f"{prefix}{name}{equals}{value}"

    def _list_flag_names(self) -> set[str]:
        return {flag.removeprefix("--") for action in self._actions for flag in action.option_strings}

    def _explain_unknown(self, unknown: str) -> str:
        """Why this parser does not have an option: another strategy owns it, or it does not exist."""
        flag = unknown.split("=")[0]
        name = flag.removeprefix("--").removeprefix("no_")
        name = SHORT_OPTIONS.get(name) or FORMER_OPTIONS.get(name, name)
        owners = [each for each in list_names("strategy") if name in map_flags(find_class("strategy", each).Settings)]
        if self.strategy and owners:
            return f"{name} is not an option of strategy {self.strategy}; it belongs to {', '.join(owners)}"
        flags = [flag for action in self._actions for flag in action.option_strings]
        former = [f"--{name}" for name, current in FORMER_OPTIONS.items() if f"--{current}" in flags]
        meant = dict.fromkeys(map(_find_current_flag, suggest_flags(flag, [*flags, *former])))
        return f"unknown option {unknown}" + (f", did you mean {' or '.join(meant)}?" if meant else "")


def _find_current_flag(flag: str) -> str:
    name = flag.removeprefix("--")
    return f"--{FORMER_OPTIONS.get(name, name)}"


def convert_value(value: Any) -> Any:
    """A value as an option holds it: a list becomes a tuple, and a list of only `none` becomes None."""
    if isinstance(value, list):
        return None if value == [None] else tuple(value)
    return value


def replace_dashes(argument: str) -> str:
    """An argument with underscores for the dashes inside its flag."""
    flag, equals, value = argument.partition("=")
    return "--" + flag[2:].replace("-", "_") + equals + value if flag.startswith("--") else argument


def _make_reader(kind: type, optional: bool, read_text: Callable[[str], Any] | None) -> Any:
    """A function that reads one value from text, with `read_text` if given; `none` unsets an optional one."""

    def read(text: str) -> Any:
        if optional and text.lower() == "none":
            return None
        if read_text is not None:
            try:
                return read_text(text)
            except ValueError as error:
                raise ArgumentTypeError(f"{error}; got {text!r}") from error
        if kind is not dict:
            try:
                return kind(text)
            except ValueError as error:
                raise ArgumentTypeError(f"must be {_WORDS[kind]}, got {text!r}") from error
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = None
        if not isinstance(value, dict):
            raise ArgumentTypeError(f"must be {_WORDS[dict]}, got {text!r}")
        return value

    return read


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", dict: "a YAML mapping such as '{g: 5.0}'"}
"""What an option accepts, by its type."""


def _format_default(option: Field) -> str:
    default = option.default if option.default is not MISSING else None
    if isinstance(default, bool):
        return f" (default: {'on' if default else 'off'}; --no_{get_flag_name(option)} turns it off)"
    if default in (None, (), ""):
        return ""
    return f" (default: {' '.join(map(str, default)) if isinstance(default, tuple) else default})"


class _SplitAtCommas(Action):
    """Reads `a,b c` as `a b c`; `const` reads each part."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, [self.const(part) for text in values for part in text.split(",")])


def _add_option(group: Any, option: Field, hint: Any, may_be_empty: bool, taken: Collection[str]) -> Action:
    flag = get_flag_name(option)
    text = (option.metadata["help"] + _format_default(option)).replace("%", "%%")
    common: dict[str, Any] = {"dest": flag, "default": SUPPRESS}
    if read_part := option.metadata.get("commas"):
        common |= {"action": _SplitAtCommas, "const": read_part}
    if hint is bool or bool in get_args(hint):
        group.add_argument(f"--no_{flag}", action="store_false", help=SUPPRESS, **common)
        return group.add_argument(f"--{flag}", action="store_true", help=text, **common)
    optional, choices = NoneType in get_args(hint), option.metadata.get("choices") or None
    given = next(kind for kind in get_args(hint) if kind is not NoneType) if optional else hint
    is_list, is_mapping = get_origin(given) is tuple, get_origin(given) is Mapping
    kind = dict if is_mapping else get_args(given)[0] if is_list else given
    short = [f"--{name}" for name, current in SHORT_OPTIONS.items() if current == flag and name not in taken]
    return group.add_argument(
        f"--{flag}",
        *short,
        # where "none" is one of the choices, it stays a text
        type=_make_reader(kind, optional and "none" not in (choices or ()), option.metadata.get("read")),
        nargs=("*" if may_be_empty or optional else "+") if is_list else None,
        choices=choices,
        metavar=None if choices else flag.upper(),
        help=text,
        **common,
    )


def add_options(parser: ArgumentParser, owner: type, title: str, *, may_be_empty: bool = True) -> None:
    """Adds a flag for every field that has a help text.

    `may_be_empty` lets required lists be empty; optional ones always may.
    """
    group, hints = parser.add_argument_group(title), get_type_hints(owner)
    for option in fields(owner):
        if "help" in option.metadata:
            _add_option(group, option, hints[option.name], may_be_empty, map_flags(owner))


def format_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options from YAML as the equivalent flags."""
    arguments: list[str] = []
    for name, value in options.items():
        if isinstance(value, bool):
            arguments.append(f"--{name}" if value else f"--no_{name}")
        elif isinstance(value, list):
            arguments += [f"--{name}", *(_format_value(item) for item in value)]
        elif isinstance(value, dict):
            arguments.append(f"--{name}={_format_value(value)}")
        else:
            arguments.append(f"--{name}={'none' if value is None else value}")
    return arguments


def _format_value(value: Any) -> str:
    """A value as text for the command line."""
    return yaml.safe_dump(value, default_flow_style=True, width=inf) if isinstance(value, dict) else str(value)


def parse_options(owner: type, arguments: Sequence[str], description: str) -> dict[str, Any]:
    """The fields of a dataclass of options that the command line sets, by name."""
    parser = OneLineParser(description=description)
    add_options(parser, owner, "options", may_be_empty=False)
    given = parser.parse(arguments)
    return {attribute: given[flag] for flag, attribute in map_flags(owner).items() if flag in given}
