"""Options: what a part of the toolkit lets its user choose, declared as fields of a dataclass.

An option is a field with a default. It belongs to the class that has the field, its owner, and is a flag of the command
line and a key of YAML files. `check_options` checks types, ranges and choices, wherever the values come from.

This module imports nothing but the standard library and light modules of ours, because every module that declares
options imports it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from math import inf, isfinite
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hebbes.contracts.errors import prefix_errors
from hebbes.contracts.plain_values import make_list, make_plain
from hebbes.contracts.search_space import SearchSpace
from hebbes.contracts.suggestion import suggest_name

MAX_INTEGER = 2**63 - 1
"""The largest integer that NumPy and the simulators can hold."""


def option(
    default: Any,
    text: str,
    *,
    range: str = "",  # reads best where options are declared
    choices: Sequence[str] = (),
    needs: Mapping[str, Sequence[Any]] | None = None,
    flag: str | None = None,
    commas: Callable[[str], str] | None = None,
    read: Callable[[str], Any] | None = None,
    changeable: bool = False,
    saved: bool = True,
    only_start: bool = False,
    advice: str = "",
    search: SearchSpace | None = None,
) -> Any:
    """A dataclass field with its help text.

    Args:
        default: the field's default; a dict is copied for each instance.
        text: the help text.
        range: the numbers that are allowed: ">= 1", "> 0", "in [0, 1)", ... Each number of a list must be in it.
        choices: the texts that are allowed; empty: any.
        needs: other options of the same owner -> the values with which this option is used. An empty list of values
            stands for any value except the default. One of them is enough; names that the owner lacks are ignored.
        flag: the flag's name, if it is not the field's name.
        commas: if given, commas separate the items of a list too, and this function reads each item.
        read: turns a text into a value, if the field's type cannot.
        changeable: whether a resumed run may have another value.
        saved: whether files of a run keep it.
        only_start: whether it sets only where a search starts, so that `--init_from` takes files with another value.
        advice: added to the message about a number outside the range.
        search: the values that a sweep tries.
    """
    metadata = {
        **{"help": text, "range": range, "choices": tuple(choices), "needs": dict(needs or {}), "flag": flag},
        **{"commas": commas, "read": read, "changeable": changeable, "saved": saved, "only_start": only_start},
        **{"advice": advice, "search": search},
    }
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def list_options(owner: type) -> list[Field]:
    """The fields of a dataclass that are options: those with a default. Empty for any other class.

    A field without a help text, as a user's own class may have it, is one only if its type can be that of an option.
    """
    return [*_find_options(owner)]


@cache
def _find_options(owner: type) -> tuple[Field, ...]:
    """Those of `list_options`, found once: the start of a run asks for them thousands of times."""
    if not hasattr(owner, "__dataclass_fields__"):
        return ()
    defaulted = [each for each in fields(owner) if each.init and get_default(each) is not MISSING]
    return tuple(each for each in defaulted if "help" in each.metadata or not _explain_type(owner, each))


def check_declarations(owner: type) -> None:
    """Raises ValueError for an option of a type that no text can be read as, or whose range or default is wrong."""
    for each in list_options(owner):
        if reason := _explain_type(owner, each):
            raise ValueError(f"its option {each.name} {reason}")
        with prefix_errors(f"its option {each.name} cannot have its default: "):
            check_value(owner, each, get_default(each))


def _explain_type(owner: type, option: Field) -> str:
    """Why an option's type cannot be that of an option; empty if it can."""
    try:
        hint = get_hints(owner)[option.name]
    except (NameError, TypeError, AttributeError) as error:  # names imported for type checkers only, and the like
        return f"has a type that cannot be looked up ({error})"
    kind, _, _ = split_hint(hint)
    if kind in (*_WORDS, Any) or option.metadata.get("read"):
        return ""
    return f"has the type {option.type!s}; types are int, float, bool, str, tuples of one of these, and mappings"


def get_default(option: Field) -> Any:
    """The default of an option; `MISSING` for a field that has none."""
    return option.default if option.default_factory is MISSING else option.default_factory()


def get_flag_name(option: Field) -> str:
    """The name of an option on the command line and in YAML files."""
    return option.metadata.get("flag") or option.name


@cache
def get_hints(owner: type) -> dict[str, Any]:
    """The types of a dataclass's fields, by name."""
    return get_type_hints(owner)


def check_options(instance: Any) -> None:
    """Checks every option of an instance of a dataclass. Called in `__post_init__`, also of frozen dataclasses.

    A list becomes a tuple, and a number of NumPy one of Python, where the field's type says so.

    Raises:
        ValueError: an option has a wrong type, or a value outside its range or choices. It names all three.
    """
    for each in list_options(type(instance)):
        value = getattr(instance, each.name)
        checked = check_value(type(instance), each, value)
        if checked is not value:
            object.__setattr__(instance, each.name, checked)


def check_value(owner: type, option: Field, value: Any, name: str = "") -> Any:
    """The value of an option of `owner`, converted as by `check_options`; ValueError, which begins with its name.

    `name` is the name in the message, by default that of the flag.
    """
    rules = {rule: option.metadata[rule] for rule in ("range", "choices", "advice") if rule in option.metadata}
    return check_argument(name or get_flag_name(option), value, get_hints(owner)[option.name], **rules)


def check_argument(
    name: str, value: Any, hint: Any, *, range: str = "", choices: Sequence[str] = (), advice: str = ""
) -> Any:
    """The value, converted to the type `hint`, as by `check_options`, with the rules of `option`.

    For arguments that are no options. Raises ValueError, which begins with the name.
    """
    kind, optional = _split_optional(hint)
    if value is None and optional:
        return None
    converted, shown = _convert(kind, value), make_list(value)
    if converted is _WRONG:
        raise ValueError(f"{name} must be {describe_type(kind)}{' or none' * optional}, got {shown!r}")
    if isinstance(converted, Mapping):
        return make_plain(name, converted)
    for item in converted if isinstance(converted, tuple) else (converted,):
        if choices and item not in choices:
            meant = suggest_name(str(item), choices)
            raise ValueError(f"{name} must be one of {', '.join(choices)}, got {item!r}{meant}")
        is_infinite = isinstance(item, float) and not isfinite(item)
        if is_infinite or (range and not parse_range(range).contains(item)):
            raise ValueError(f"{name} must be {_describe_range(item, range)}, got {shown}{advice}")
        if isinstance(item, str) and "\0" in item:
            raise ValueError(f"{name} must be a text without NUL characters, got {shown!r}")
        if isinstance(item, int) and abs(item) > MAX_INTEGER:
            raise ValueError(f"{name} must be {'below ' if item > 0 else 'above -'}2^63, got {shown}")
    return converted


def check_seeds(seed: int, seeds: int) -> None:
    """ValueError if the last of so many consecutive seeds is above `MAX_INTEGER`."""
    if seeds > (most := MAX_INTEGER - seed + 1):
        raise ValueError(f"seeds must be <= {most} with seed {seed}, got {seeds}")


def _describe_range(item: Any, allowed: str) -> str:
    is_bounded = allowed.startswith("in ")
    return f"a finite number {allowed}".rstrip() if isinstance(item, float) and not is_bounded else allowed


@dataclass(frozen=True)
class Range:
    """An interval of numbers."""

    low: float = -inf
    high: float = inf
    has_low: bool = True
    has_high: bool = True

    def contains(self, value: float) -> bool:
        """Whether a number lies in the interval; never NaN."""
        above = value >= self.low if self.has_low else value > self.low
        return above and (value <= self.high if self.has_high else value < self.high)


@cache
def parse_range(text: str) -> Range:
    """The interval of ">= 1", "> 1", "<= 1", "< 1" or "in [0, 1)", with round or square brackets."""
    if found := re.fullmatch(r"(>=?|<=?) (\S+)", text):
        sign, bound = found[1], float(found[2])
        return Range(low=bound, has_low="=" in sign) if sign[0] == ">" else Range(high=bound, has_high="=" in sign)
    if found := re.fullmatch(r"in ([\[(])(\S+), (\S+)([\])])", text):
        return Range(float(found[2]), float(found[3]), found[1] == "[", found[4] == "]")
    raise ValueError(f"a range is written '>= 1' or 'in [0, 1)', got {text!r}")


_WRONG = object()


def _split_optional(hint: Any) -> tuple[Any, bool]:
    """A type without None, and whether None is allowed."""
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return (kinds[0] if len(kinds) == 1 else Any), NoneType in get_args(hint)


def split_hint(hint: Any) -> tuple[Any, bool, bool]:
    """The type of an option's items, whether it is a list of them, and whether None is allowed."""
    kind, optional = _split_optional(hint)
    if get_origin(kind) is tuple:
        return get_args(kind)[0], True, optional
    return (dict if get_origin(kind) is Mapping else kind), False, optional


def describe_type(kind: Any) -> str:
    """What an option of this type accepts, in words."""
    if get_origin(kind) is tuple:
        number = "" if Ellipsis in get_args(kind) else f"{len(get_args(kind))} "
        return f"a list of {number}{_PLURALS.get(get_args(kind)[0], 'values')}"
    return _WORDS.get(dict if get_origin(kind) is Mapping else kind, "a value")


_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    dict: "a YAML mapping such as '{g: 5.0}'",
}
_PLURALS: dict[Any, str] = {int: "whole numbers", float: "numbers", str: "texts"}


def _convert(kind: Any, value: Any) -> Any:
    """The value in a type, or `_WRONG` if it cannot be; types without a rule accept everything."""
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        if not isinstance(value, tuple | list) or (Ellipsis not in kinds and len(value) != len(kinds)):
            return _WRONG
        items = tuple(_convert(kinds[0], item) for item in value)
        return _WRONG if _WRONG in items else items
    if kind is float:
        try:
            return float(value) if isinstance(value, Real) and not isinstance(value, bool) else _WRONG
        except OverflowError:
            return _WRONG
    if kind is int:
        return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else _WRONG
    expected = Mapping if get_origin(kind) is Mapping else kind
    return value if expected is Any or not isinstance(expected, type) or isinstance(value, expected) else _WRONG


def find_unused_options(owner: type, values: Mapping[str, Any]) -> dict[str, str]:
    """Options of `owner` that have no effect with these values -> text on the options with which they would have one.

    `values` has the value of every option by field name.
    """
    known = {each.name: each for each in list_options(owner)}
    found = {}
    for name, each in known.items():
        needs = {other: used for other, used in each.metadata.get("needs", {}).items() if other in known}
        met = (values[it] in used if used else values[it] != get_default(known[it]) for it, used in needs.items())
        if needs and not any(met):
            found[name] = " or ".join(_describe_need(known[other], used) for other, used in needs.items())
    return found


def _describe_need(other: Field, used_with: Sequence[Any]) -> str:
    flag, default = get_flag_name(other), get_default(other)
    if used_with:
        return f"--{flag} {', '.join(map(str, used_with))}"
    shown = f"{default:g}" if isinstance(default, float) else default
    return f"--{flag}" if default is None or default is False else f"--{flag} other than {shown}"


def map_flags(owner: type) -> dict[str, str]:
    """Flag -> field name, for every option of a dataclass."""
    return {get_flag_name(option): option.name for option in list_options(owner)}
