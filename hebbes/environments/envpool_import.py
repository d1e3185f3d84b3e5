"""import_envpool: EnvPool, whose families of environments are executed when one of them is first made.

Its entry point imports all of them to register their ids, which takes up to a second. A registration needs the module
`registration` of a family's package, and not the package itself, which loads a library and makes a class for each id.
"""

import importlib
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any


def import_envpool() -> Any:
    """The package. ImportError if it is not installed. A family is no attribute of it until somebody imports that."""
    found, families = find_spec("envpool"), []
    if found is not None and found.origin is not None and "envpool" not in sys.modules:
        root = Path(found.origin).parent
        folders = {
            parent for file in root.rglob("registration.py") for parent in file.parents if root in parent.parents
        }
        for folder in folders:
            name = ".".join(folder.relative_to(root.parent).parts)
            spec = spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
            assert spec is not None
            sys.modules[name] = module_from_spec(spec)  # in which registrations are found; it is not executed
            families.append(name)
    try:
        return importlib.import_module("envpool")
    finally:
        for name in families:
            del sys.modules[name]  # who makes one imports its family
