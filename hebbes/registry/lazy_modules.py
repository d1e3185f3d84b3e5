"""Modules of a package that are imported when they are first needed, because what they import takes long to load."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def make_getter(package: str) -> Callable[[str], ModuleType]:
    """A `__getattr__` for the package (PEP 562), which imports its module of that name.

    AttributeError if there is none; ModuleNotFoundError if a package that the module needs is not installed.
    """

    def get_module(name: str) -> ModuleType:
        full_name = f"{package}.{name}"
        try:
            return import_module(full_name)
        except ModuleNotFoundError as error:
            if error.name != full_name:
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from error

    return get_module
