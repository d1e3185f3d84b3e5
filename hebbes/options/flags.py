"""Flags: one for every field of a dataclass that has a help text, read by argparse.

argparse rather than a library that fills dataclasses, because it can return the flags given and no others: precedence
is then one merge of dictionaries, and the keys of a YAML file are checked by turning them into flags.
"""

from argparse import SUPPRESS, Action, ArgumentError, ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from math import inf
from types import NoneType
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

import yaml

from hebbes.contracts.option import flag_name, flags_of
from hebbes.options.suggestions import suggest_flags
from hebbes.registry.lookup import did_you_mean, lookup, names


class OneLineParser(ArgumentParser):
    """Reports a mistake in one line, suggests the nearest flag, and exits with status 2."""

    def __init__(self, strategy: str = "", **settings: Any):
        super().__init__(allow_abbrev=False, **settings)
        self.source, self.strategy = "", strategy

    def error(self, message: str) -> NoReturn:
        """Prints one line and exits."""
        self.exit(2, f"{self.prog}: error: {self.source}{' '.join(message.split())}\n")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            allowed = list(map(str, action.choices))
            hint = did_you_mean(str(value), allowed) or ","
            raise ArgumentError(action, f"got {value!r}{hint} allowed: {', '.join(allowed)}")

    def parse(self, arguments: Sequence[str], source: str = "") -> dict[str, Any]:
        """The options given, by name; `--max-env-steps` is read as `--max_env_steps`."""
        self.source = f"{source}: " if source else ""
        found, unknown = self.parse_known_args([underscored(argument) for argument in arguments])
        if unknown:
            self.error(self._about(unknown[0]))
        self.source = ""
        return {name: plain(value) for name, value in vars(found).items()}

    def _about(self, unknown: str) -> str:
        """What is wrong with an option that this parser does not have: it is another strategy's, or nobody's."""
        flag = unknown.split("=")[0]
        name = flag.removeprefix("--").removeprefix("no_")
        owners = [each for each in names("strategy") if name in flags_of(lookup("strategy", each).Settings)]
        if self.strategy and owners:
            return f"{name} is no option of strategy {self.strategy}; it belongs to {', '.join(owners)}"
        flags = [flag for action in self._actions for flag in action.option_strings]
        meant = suggest_flags(flag, flags)
        return f"unknown option {unknown}" + (f", did you mean {' or '.join(meant)}?" if meant else "")


def plain(value: Any) -> Any:
    """A value as an option holds it: a list as a tuple; a list of nothing but `none` as None."""
    if isinstance(value, list):
        return None if value == [None] else tuple(value)
    return value


def underscored(argument: str) -> str:
    """An argument with the dashes within its flag as underscores."""
    flag, equals, value = argument.partition("=")
    return "--" + flag[2:].replace("-", "_") + equals + value if flag.startswith("--") else argument


def _reader(kind: type, optional: bool, read_text: Callable[[str], Any] | None) -> Any:
    """Reads one value from text, by `read_text` if there is one; `none` where the option may be left unset."""

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
"""What an option takes, by its type."""


def _default_text(option: Field) -> str:
    default = option.default if option.default is not MISSING else None
    if isinstance(default, bool):
        return f" (default: {'on' if default else 'off'}; --no_{flag_name(option)} turns it off)"
    if default in (None, (), ""):
        return ""
    return f" (default: {' '.join(map(str, default)) if isinstance(default, tuple) else default})"


class _SplitAtCommas(Action):
    """Takes `a,b c` for `a b c`; `const` reads each part."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, [self.const(part) for text in values for part in text.split(",")])


def _add_option(group: Any, option: Field, hint: Any, may_be_empty: bool) -> Action:
    flag = flag_name(option)
    text = (option.metadata["help"] + _default_text(option)).replace("%", "%%")
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
    return group.add_argument(
        f"--{flag}",
        # a choice of that name is a text
        type=_reader(kind, optional and "none" not in (choices or ()), option.metadata.get("read")),
        nargs=("*" if may_be_empty or optional else "+") if is_list else None,
        choices=choices,
        metavar=None if choices else flag.upper(),
        help=text,
        **common,
    )


def add_options(parser: ArgumentParser, owner: type, title: str, *, may_be_empty: bool = True) -> None:
    """A flag for every field of a dataclass that has a help text; whether lists that have a default may be empty."""
    group, hints = parser.add_argument_group(title), get_type_hints(owner)
    for option in fields(owner):
        if "help" in option.metadata:
            _add_option(group, option, hints[option.name], may_be_empty)


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options from YAML as the flags that say the same."""
    arguments: list[str] = []
    for name, value in options.items():
        if isinstance(value, bool):
            arguments.append(f"--{name}" if value else f"--no_{name}")
        elif isinstance(value, list):
            arguments += [f"--{name}", *(_as_text(item) for item in value)]
        elif isinstance(value, dict):
            arguments.append(f"--{name}={_as_text(value)}")
        else:
            arguments.append(f"--{name}={'none' if value is None else value}")
    return arguments


def _as_text(value: Any) -> str:
    """A value as the command line takes it."""
    return yaml.safe_dump(value, default_flow_style=True, width=inf) if isinstance(value, dict) else str(value)


def parse_options(owner: type, arguments: Sequence[str], description: str) -> dict[str, Any]:
    """The fields of a dataclass of options that the command line gives."""
    parser = OneLineParser(description=description)
    add_options(parser, owner, "options", may_be_empty=False)
    given = parser.parse(arguments)
    return {attribute: given[flag] for flag, attribute in flags_of(owner).items() if flag in given}
