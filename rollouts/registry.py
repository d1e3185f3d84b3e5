"""Names become classes: a file stem in a package of ours, or `package.module:Class` in a user's own."""

import difflib
import importlib
import pkgutil
import re
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from rollouts.users_classes import check_class

_OWN_MODULES = re.compile(r"(policies|wrappers|strategies)(\.\w+)+")

GYMNASIUM_WRAPPERS = {
    *("AtariPreprocessing", "ClipAction", "ClipReward", "DelayObservation", "DiscretizeAction"),
    *("DiscretizeObservation", "DtypeObservation", "FilterObservation", "FlattenObservation"),
    *("FrameStackObservation", "GrayscaleObservation", "MaxAndSkipObservation", "NormalizeObservation"),
    *("OrderEnforcing", "RecordEpisodeStatistics", "RepeatAction", "RescaleAction"),
    *("RescaleObservation", "ReshapeObservation", "ResizeObservation", "StickyAction"),
    *("TimeAwareObservation", "TimeLimit"),
}
"""Wrappers of Gymnasium that act on their environment alone. Others write files, open windows or call functions."""


def lookup(package: str, name: str) -> type[Any]:
    """The class that `name` stands for.

    Args:
        package: where our own live, such as "wrappers".
        name: "early_stop" for class EarlyStop in wrappers/early_stop.py, or "my_package.module:Class".

    Raises:
        ValueError: there is no such class; one line with the nearest name. Or a user's own is no policy or strategy.
    """
    kind = f"{package.removesuffix('ies')}y" if package.endswith("ies") else package.removesuffix("s")
    if ":" in name:
        return check_class(kind, name, _users_class(kind, name))
    stems = _stems(package)
    found = _class_of_stem(package, name) if name in stems else None
    if found is None:
        known = names(package)
        theirs = GYMNASIUM_WRAPPERS if package == "wrappers" else ()
        hint = did_you_mean(name, [*known, *sorted(theirs)]) or ","
        raise ValueError(f"unknown {kind} {name!r}{hint} known: {', '.join(known)}")
    return found


def names(package: str) -> list[str]:
    """The names of our own classes in a package, as `lookup` takes them."""
    return [stem for stem in _stems(package) if _class_of_stem(package, stem)]


def is_ours(name: str) -> bool:
    """Whether "module:Class" is a class of our own or a harmless wrapper of Gymnasium's, so that a file may name it.

    A class that a module of ours merely imports is not.
    """
    module, _, class_name = name.partition(":")
    if module == "gymnasium.wrappers":
        return class_name in GYMNASIUM_WRAPPERS
    return _OWN_MODULES.fullmatch(module) is not None and _users_class("class", name).__module__ == module


def check_allowed(modules: Iterable[str], allowed: Sequence[str]) -> None:
    """Refuses, with ValueError, modules that are in none of the packages that the user allows to be imported.

    The line has the whole flag, with the packages given so far, because a flag given again replaces the first.
    """
    missing = [
        module
        for module in dict.fromkeys(modules)
        if not any(module == package or module.startswith(f"{package}.") for package in allowed)
    ]
    if missing:
        which, them = (f"module{'s' * (len(missing) > 1)}", "them" if len(missing) > 1 else "it")
        flag = f"--import {' '.join(dict.fromkeys((*allowed, *missing)))}"
        raise ValueError(
            f"needs code from the {which} {', '.join(map(repr, missing))}; if you trust {them}, give {flag}"
        )


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """ ", did you mean 'y'?" for the nearest known name, whatever its case; empty if none is near."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    return f", did you mean {by_lower_case[nearest[0]]!r}?" if nearest else ""


def _stems(package: str) -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__))


def _class_of_stem(package: str, stem: str) -> type[Any] | None:
    """The class that a module defines itself under its own stem in CamelCase."""
    module = importlib.import_module(f"{package}.{stem}")
    found = getattr(module, "".join(word.capitalize() for word in stem.split("_")), None)
    return found if isinstance(found, type) and found.__module__ == module.__name__ else None


def _users_class(kind: str, name: str) -> type[Any]:
    module_name, _, class_name = name.partition(":")
    found = getattr(import_module(f"{kind} {name!r}", module_name), class_name, None)
    if not isinstance(found, type):
        raise ValueError(f"{kind} {name!r}: module {module_name!r} has no class {class_name!r}")
    return found


def import_module(wanted_by: str, name: str) -> ModuleType:
    """A user's module; ValueError, naming what wanted it, if it cannot be imported."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"{wanted_by}: {name!r} is no name of a module, such as my_package.envs; paths are not taken")
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever a user's module raises
        absent = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
        advice = "; is its folder in PYTHONPATH?" if absent else ""
        raise ValueError(f"{wanted_by}: cannot import {name!r}: {type(error).__name__}: {error}{advice}") from error
