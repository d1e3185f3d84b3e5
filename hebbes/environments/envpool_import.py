"""import_envpool: EnvPool without the renderers of its Jumanji games, which import pyplot: half of its import time.

They are imported when one of them is used, which is never here.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

_RENDERERS = "envpool.jumanji._official_render."


class _LazyRenderers:
    """Finds the renderers as modules that are executed on the first use of a name in them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder.find_spec`."""
        spec = PathFinder.find_spec(name, path, target) if name.startswith(_RENDERERS) else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def import_envpool() -> Any:
    """The package. ImportError if it is not installed."""
    sys.meta_path.insert(0, _LazyRenderers)
    try:
        return importlib.import_module("envpool")
    finally:
        sys.meta_path.remove(_LazyRenderers)
