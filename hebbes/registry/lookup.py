"""Finds the class that a name stands for: one of ours from the tables, or a user's own `package.module:Class`."""

import importlib
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from hebbes.contracts.errors import convert_foreign_exits, describe_error
from hebbes.contracts.suggestion import suggest_name
from hebbes.registry.former_names import FORMER_PACKAGES
from hebbes.registry.tables import GYMNASIUM_WRAPPERS, TABLES
from hebbes.registry.users_classes import check_class


def find_class(kind: str, name: str) -> type[Any]:
    """The class that `name` stands for.

    Args:
        kind: a key of `registry.tables.TABLES`, such as "wrapper".
        name: one in that table, such as "early_stop", or "my_package.module:Class".

    Raises:
        ValueError: there is no such class (with a suggestion), or a user's class is no policy, strategy or logger where
            one is needed. Wrappers are checked when they are made.
    """
    if ":" in name:
        return check_class(kind, name, _import_class(kind, name))
    table = TABLES[kind]
    if name not in table:
        theirs = GYMNASIUM_WRAPPERS if kind == "wrapper" else ()
        hint = suggest_name(name, [*table, *sorted(theirs)]) or ","
        own = "; a class of yours is package.module:Class" * ("." in name)
        raise ValueError(f"unknown {kind} {name!r}{hint} known: {', '.join(table)}{own}")
    return _import_class(kind, table[name])


def list_names(kind: str) -> list[str]:
    """The names of our own classes of a kind, which `find_class` takes."""
    return list(TABLES[kind])


def is_ours(name: str) -> bool:
    """Whether a file may name this "module:Class": it is one of ours, or a harmless wrapper of Gymnasium."""
    module, _, class_name = name.partition(":")
    if module == "gymnasium.wrappers":
        return class_name in GYMNASIUM_WRAPPERS
    return any(name in table.values() for table in TABLES.values())


def list_users_modules(names: Iterable[str]) -> list[str]:
    """The modules of those names that are written "module:Name" and are not ours."""
    return [name.partition(":")[0] for name in names if ":" in name and not is_ours(name)]


def check_allowed(modules: Iterable[str], allowed: Sequence[str]) -> None:
    """Raises ValueError unless all modules are in packages that the user allows to be imported.

    The message has the whole flag, with the packages given so far, because a second flag replaces the first.
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
            f"needs code from the {which} {', '.join(map(repr, missing))}; if you trust {them}, "
            f'give {flag} (in Python imports=[...], and to hebbes.train "import": [...])'
        )


def _advise_new_names(error: Exception) -> str:
    """What to do about an import of our code by a name of an earlier version; empty for any other error."""
    package = str(getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ImportError) and package in (*FORMER_PACKAGES, "hebbes"):
        return "; hebbes is one package now, and CHANGELOG.md lists what its modules and functions are called"
    return ""


def _import_class(kind: str, name: str) -> type[Any]:
    module_name, _, class_name = name.partition(":")
    found = getattr(import_users_module(f"{kind} {name!r}", module_name), class_name, None)
    if not isinstance(found, type):
        raise ValueError(f"{kind} {name!r}: module {module_name!r} has no class {class_name!r}")
    return found


def import_users_module(wanted_by: str, name: str) -> ModuleType:
    """A user's module. If it cannot be imported, raises ValueError that names what needs it (`wanted_by`)."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(
            f"{wanted_by}: {name!r} is not the name of a module, such as my_package.envs; paths do not work"
        )
    try:
        with convert_foreign_exits():
            return importlib.import_module(name)
    except Exception as error:  # whatever a user's module raises
        absent = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
        advice = "; is its folder in PYTHONPATH?" if absent else _advise_new_names(error)
        raise ValueError(f"{wanted_by}: cannot import {name!r}: {describe_error(error)}{advice}") from error
