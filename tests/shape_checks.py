"""The shapes and types in annotations are checked while the tests run.

jaxtyping's import hook wraps every function and every dataclass of the listed modules. A call with an array of another
shape, of another type of numbers, or with axes that contradict each other then raises `jaxtyping.TypeCheckError`.
Worker processes, and programs that a test starts, import the modules without the hook: there they run as for a user.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jaxtyping

CHECKED_ROOMS = ("contracts", "execution", "files", "reporting", "statistics")
"""Folders of hebbes whose modules are checked."""
CHECKER = "typeguard.typechecked"
ROOT = Path(__file__).parent.parent


def list_checked_modules() -> list[str]:
    """Modules of the checked rooms. Without those that call `njit`: numba cannot compile wrapped functions."""
    files = [file for room in CHECKED_ROOMS for file in sorted((ROOT / "hebbes" / room).rglob("*.py"))]
    checked = [file for file in files if file.stem != "__init__" and "njit" not in file.read_text()]
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in checked]


@contextmanager
def unchecked() -> Iterator[None]:
    """Nothing is checked in this context, or in a test with this decorator.

    For what our own code has to refuse, because users run it without these checks.
    """
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def check_shapes() -> None:
    """Checks the modules that are imported from now on. Called before any module of hebbes is imported."""
    assert not any(name.startswith("hebbes.") for name in sys.modules)
    jaxtyping.install_import_hook(list_checked_modules(), CHECKER)
