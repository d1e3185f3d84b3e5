"""A user's own policies, strategies and wrappers, held to their contracts before anything starts.

A protocol of `contracts/` says what its kind of class must have; what a class lacks of it is named in one line.
"""

import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

from hebbes.contracts.environment import BatchEnv
from hebbes.contracts.errors import reason
from hebbes.contracts.policy import Layout, Policy
from hebbes.contracts.strategy import Strategy


@dataclass(frozen=True)
class Kind:
    """What the class that an option names must be."""

    contract: type[Any]
    advice: str
    """Where to read what that is."""


KINDS = {
    "policy": Kind(Policy, "inherit from hebbes.policies.base.StaticPolicy, or see hebbes/contracts/policy.py"),
    "strategy": Kind(Strategy, "see hebbes/contracts/strategy.py"),
    "wrappers": Kind(
        BatchEnv, "inherit from hebbes.wrappers.base.BatchWrapper, or see hebbes/contracts/environment.py"
    ),
}
"""By the option that names the class."""


def check_class(option: str, name: str, found: type[Any]) -> type[Any]:
    """The class itself; ValueError that says what it lacks to be what the option asks for.

    Attributes that are no methods may come with the instance, and are asked for there.
    """
    kind = KINDS.get(option)
    if kind is None:
        return found
    methods = {each for each, value in vars(kind.contract).items() if inspect.isfunction(value)}
    lacking = [each for each in _lacking(kind, found) if each not in getattr(found, "__dataclass_fields__", {})]
    if methods & set(lacking) and not hasattr(found, "__getattr__"):  # which may hand on what a wrapper is asked for
        raise ValueError(_lacks(option, name, lacking))
    if option == "policy" and not is_dataclass(found):
        raise ValueError(f"policy {name!r} is no policy: it is no dataclass, whose fields a file could hold")
    if option == "strategy":
        _check_settings(name, getattr(found, "Settings", None))
    return found


def make(option: str, name: str, found: type[Any], /, *arguments: Any, **options: Any) -> Any:
    """An instance of the class that an option names; ValueError, in one line, where a user's own cannot be made."""
    with naming(option, name):
        made = found(*arguments, **options)
    kind = KINDS.get(option)
    if is_users(name) and kind is not None and (lacking := _lacking(kind, made)):
        raise ValueError(_lacks(option, name, lacking))
    return made


def make_policy(name: str, found: type[Any], /, **options: Any) -> Policy:
    """A policy with a layout that can be used."""
    made: Policy = make("policy", name, found, **options)
    with naming("policy", name):
        if not isinstance(made.layout, Layout):
            raise ValueError(f"layout must be a hebbes.contracts.policy.Layout, got {made.layout!r}")
        if made.layout.num_params < 1:
            raise ValueError("its layout has no parameters")
    return made


@contextmanager
def naming(option: str, name: str) -> Iterator[None]:
    """Turns whatever a user's class raises into a ValueError of one line that names it; ours speak for themselves."""
    try:
        yield
    except Exception as error:
        if not is_users(name):
            raise
        told = (type(error) is ValueError and str(error)) or reason(error)
        if told.startswith(f"{option} {name!r}"):
            raise
        raise ValueError(f"{option} {name!r} cannot be used: {told}{_place(name, error)}") from error


def is_users(name: str) -> bool:
    """Whether a name is that of a module's class, and not the stem of a file of ours."""
    return not name.isidentifier()


def _place(name: str, error: Exception) -> str:
    """Where in the user's module it was raised, as far as that can be told."""
    file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({file}, line {lines[-1]})" if lines else ""


def _lacking(kind: Kind, thing: Any) -> list[str]:
    """What a class or an instance has not, of all that its contract names; properties are not called."""
    named = {**inspect.get_annotations(kind.contract), **vars(kind.contract)}
    return [name for name in named if not name.startswith("_") and not _has(thing, name)]


def _has(thing: Any, name: str) -> bool:
    return inspect.getattr_static(thing, name, None) is not None or hasattr(thing, name)


def _lacks(option: str, name: str, lacking: list[str]) -> str:
    kind = option.removesuffix("s")
    return f"{option} {name!r} is no {kind}: it lacks {', '.join(lacking)} ({KINDS[option].advice})"


def _check_settings(name: str, settings: Any) -> None:
    """Refuses Settings that cannot be flags: every field needs a default and a help text."""
    if not (isinstance(settings, type) and is_dataclass(settings)):
        raise ValueError(
            f"strategy {name!r} is no strategy: it lacks Settings, a dataclass of its options (as in hebbes/strategies/ga.py)"
        )
    for each in fields(settings):
        if "help" not in each.metadata:
            raise ValueError(f"strategy {name!r}: its setting {each.name} has no help text, metadata={{'help': ...}}")
        if (each.default, each.default_factory) == (MISSING, MISSING):
            raise ValueError(f"strategy {name!r}: its setting {each.name} has no default")
