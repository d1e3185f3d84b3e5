"""Checks a user's own policies, strategies, wrappers and loggers against their contracts, before anything starts.

The contracts are the protocols of `contracts/`. One line names everything that a class lacks.
"""

import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from numbers import Integral
from typing import Any

from hebbes.contracts.engine import EngineError
from hebbes.contracts.environment import BatchEnv
from hebbes.contracts.errors import convert_foreign_exits, describe_error, join_lines
from hebbes.contracts.logger import Logger
from hebbes.contracts.policy import Layout, Policy
from hebbes.contracts.strategy import Strategy


@dataclass(frozen=True)
class Kind:
    """What a class must be to be named by an option."""

    contract: type[Any]
    advice: str
    """Where to read about it."""


KINDS = {
    "policy": Kind(Policy, "inherit from hebbes.policies.base.StaticPolicy, or see hebbes/contracts/policy.py"),
    "strategy": Kind(Strategy, "see hebbes/contracts/strategy.py"),
    "wrappers": Kind(
        BatchEnv, "inherit from hebbes.wrappers.base.BatchWrapper, or see hebbes/contracts/environment.py"
    ),
    "logger": Kind(Logger, "inherit from hebbes.recording.base.RunLogger, or see hebbes/contracts/logger.py"),
}
"""Option that names the class, or kind as `find_class` takes it -> kind of class."""


def check_class(option: str, name: str, found: type[Any]) -> type[Any]:
    """The class itself; ValueError that says what it lacks, if it is not of the kind that the option needs.

    Attributes other than methods may be set by the constructor. `make_instance` checks them.
    """
    kind = KINDS.get(option)
    if kind is None:
        return found
    methods = {each for each, value in vars(kind.contract).items() if inspect.isfunction(value)}
    lacking = [each for each in _find_missing(kind, found) if each not in getattr(found, "__dataclass_fields__", {})]
    if methods & set(lacking) and not hasattr(found, "__getattr__"):  # a wrapper's may delegate
        raise ValueError(_describe_missing(option, name, lacking))
    if option == "policy" and not is_dataclass(found):
        raise ValueError(f"policy {name!r} is not a policy: it is not a dataclass, whose fields a file could hold")
    if option == "strategy":
        _check_settings(name, getattr(found, "Settings", None))
    return found


def make_instance(option: str, name: str, found: type[Any], /, *arguments: Any, **options: Any) -> Any:
    """An instance of the class that an option names; ValueError, in one line, if a user's class cannot be made."""
    with convert_errors(option, name):
        made = found(*arguments, **options)
    kind = KINDS.get(option)
    if is_users_class(name) and kind is not None and (lacking := _find_missing(kind, made)):
        raise ValueError(_describe_missing(option, name, lacking))
    return made


def check_arguments(option: str, name: str, found: type[Any], arguments: Mapping[str, Any]) -> None:
    """Raises ValueError if a wrapper's class cannot be called with an environment and these arguments."""
    signature = inspect.signature(found)
    try:
        signature.bind(None, **arguments)
    except TypeError as error:
        known = signature.parameters
        unknown = [each for each in arguments if each not in known]
        if unknown and not any(each.kind is each.VAR_KEYWORD for each in known.values()):
            takes = ", ".join([*known][1:]) or "none"
            raise ValueError(f"{option}: {name!r} has no argument {unknown[0]!r}; it takes {takes}") from error
        given = dict(arguments) or "no arguments"
        raise ValueError(f"{option}: {name!r} cannot be made with {given}: {error}") from error


def make_policy(name: str, found: type[Any], /, **options: Any) -> Policy:
    """A policy whose layout has been checked."""
    made: Policy = make_instance("policy", name, found, **options)
    with convert_errors("policy", name):
        if not isinstance(made.layout, Layout):
            raise ValueError(f"layout must be a hebbes.contracts.policy.Layout, got {made.layout!r}")
        for array, shape in made.layout.shapes.items():
            if not all(isinstance(size, Integral) and size >= 0 for size in shape):
                raise ValueError(f"its layout must have whole numbers in shapes, got {tuple(shape)} for {array!r}")
        if made.layout.num_params < 1:
            raise ValueError("its layout has no parameters")
    return made


@contextmanager
def convert_errors(option: str, name: str) -> Iterator[None]:
    """Turns any exception or `sys.exit` of a user's class into a ValueError of one line that names it; others pass."""
    try:
        with convert_foreign_exits():
            yield
    except Exception as error:
        is_told = type(error) is ValueError and str(error).startswith(f"{option} {name!r}")
        if is_told or not is_users_class(name):
            raise
        raise ValueError(describe_users_error(option, name, error)) from error


@contextmanager
def convert_policy_errors(policy: Policy, target: type[ValueError] | type[EngineError]) -> Iterator[None]:
    """Turns an exception in a method of a user's policy into `target`, in one line that names it; others pass."""
    try:
        yield
    except Exception as error:
        if _is_ours(policy):
            policy = getattr(policy, "policy", policy)  # an intervention, around what may be a user's
        raising = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
        if _is_ours(policy) or not any(each is policy for each in raising):
            raise
        raise target(describe_users_error("policy", describe_class(policy), error)) from error


def _is_ours(policy: Policy) -> bool:
    return type(policy).__module__.startswith("hebbes.")


def describe_class(thing: object) -> str:
    """An object's class, as an option names it."""
    return f"{type(thing).__module__}:{type(thing).__qualname__}"


def describe_users_error(option: str, name: str, error: Exception) -> str:
    """What a user's class raised, and where, in one line."""
    told = (type(error) is ValueError and join_lines(error)) or describe_error(error)
    return f"{option} {name!r} cannot be used: {told}{_describe_place(name, error)}"


def is_users_class(name: str) -> bool:
    """Whether a name is a user's "module:Class", not a name in our tables."""
    return not name.isidentifier()


def _describe_place(name: str, error: Exception) -> str:
    """The last line of the user's module in the traceback, as a text; empty if there is none."""
    file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({file}, line {lines[-1]})" if lines else ""


def _find_missing(kind: Kind, thing: Any) -> list[str]:
    """The names in a contract that a class or an instance does not have. Properties are not called."""
    named = {**inspect.get_annotations(kind.contract), **vars(kind.contract)}
    return [name for name in named if not name.startswith("_") and not _has(thing, name)]


def _has(thing: Any, name: str) -> bool:
    return inspect.getattr_static(thing, name, None) is not None or hasattr(thing, name)


def _describe_missing(option: str, name: str, lacking: list[str]) -> str:
    kind = option.removesuffix("s")
    return f"{option} {name!r} is not a {kind}: it lacks {', '.join(lacking)} ({KINDS[option].advice})"


def _check_settings(name: str, settings: Any) -> None:
    """Raises ValueError if Settings cannot become flags: every field needs a default and a help text."""
    if not (isinstance(settings, type) and is_dataclass(settings)):
        raise ValueError(
            f"strategy {name!r} is not a strategy: it lacks Settings, a dataclass of its options "
            "(as in hebbes/strategies/ga.py)"
        )
    for each in fields(settings):
        if "help" not in each.metadata:
            raise ValueError(f"strategy {name!r}: its setting {each.name} has no help text, metadata={{'help': ...}}")
        if (each.default, each.default_factory) == (MISSING, MISSING):
            raise ValueError(f"strategy {name!r}: its setting {each.name} has no default")
