"""import_envpool: EnvPool, whose families of environments are executed when one of their names is first used.

Its entry point imports all of them to register their ids, which takes up to a second. A registration needs the module
`registration` of a family's package, and not the package itself, which loads a library and makes a class for each id.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any

_ALWAYS_USED = "envpool.python"


class _OnFirstUse(Loader):
    """Executes a package when a name is asked for that it does not have yet.

    `importlib.util.LazyLoader` would execute it already when one of its modules is imported.
    """

    def __init__(self, loader: Loader):
        self._loader: Loader | None = loader
        self._lock = RLock()

    def create_module(self, spec: ModuleSpec) -> None:
        """As `importlib.abc.Loader.create_module`: an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module a `__getattr__` (PEP 562), and executes nothing yet."""

        def find(name: str) -> Any:
            if not name.startswith("__"):  # other programs ask all modules for such names
                self._execute(module)
                if vars(module).get("__getattr__") is not find:  # else it asks itself while it is executed
                    return getattr(module, name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        vars(module)["__getattr__"] = find
        assert module.__spec__
        module.__spec__.loader = module.__loader__ = self._loader  # whom others ask for files of the package

    def _execute(self, module: ModuleType) -> None:
        with self._lock:
            loader, self._loader = self._loader, None
            if loader is None:
                return
            ours = vars(module)["__getattr__"]
            try:
                loader.exec_module(module)
            except BaseException:
                self._loader = loader
                raise
            if vars(module)["__getattr__"] is ours:
                del vars(module)["__getattr__"]


class _FamilyFinder:
    """Finds EnvPool's packages, except for what all of them use."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder.find_spec`."""
        if not name.startswith("envpool.") or name == _ALWAYS_USED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is not None:
            spec.loader = _OnFirstUse(spec.loader)
        return spec


def import_envpool() -> Any:
    """The package. ImportError if it is not installed."""
    sys.meta_path.insert(0, _FamilyFinder)
    try:
        return importlib.import_module("envpool")
    finally:
        sys.meta_path.remove(_FamilyFinder)
