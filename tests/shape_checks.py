"""The shapes and types in annotations are checked while the tests run.

jaxtyping's import hook wraps the functions and the dataclasses of hebbes. A call with an array of another shape, of
another type of numbers, or with axes that contradict each other then raises `jaxtyping.TypeCheckError`. Where no array
is in a signature, nothing is checked: mypy checks plain types, our own code checks options, and the suite would take
much longer. Worker processes, and programs that a test starts, import the modules without the hook: there they run as
for a user.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import jaxtyping
from typeguard import typechecked

ROOT = Path(__file__).parent.parent
CHECKED_ROOMS = sorted(file.parent.name for file in (ROOT / "hebbes").glob("*/__init__.py"))
"""Folders of hebbes whose modules are checked: all of them."""

REFUSALS: list[str] = []
"""What the checks have refused since a test began. Code that expects a TypeError could swallow a refusal: so a test
fails if there are any (see conftest.py)."""


def check_arrays(function: Callable) -> Callable:
    """The function with its types checked, or unchanged if no array is in its signature."""
    hints = function.__annotations__.values()
    # after a refusal jaxtyping asks again with each single argument, to name the wrong one, which may be no array
    if not any("ndarray" in str(hint) for hint in hints) and function.__name__ != "check_single_arg":
        return function
    checked = typechecked(function)

    @wraps(function)
    def check(*args: Any, **kwargs: Any) -> Any:
        try:
            return checked(*args, **kwargs)
        except TypeError as refusal:
            REFUSALS.append(str(refusal))
            raise

    return check


def list_checked_modules() -> list[str]:
    """Modules of the checked rooms. Without compiled kernels: numba cannot compile wrapped functions."""
    files = [file for room in CHECKED_ROOMS for file in sorted((ROOT / "hebbes" / room).rglob("*.py"))]
    checked = [file for file in files if file.stem != "__init__" and file.parent.name != "kernels"]
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
    jaxtyping.install_import_hook(list_checked_modules(), f"{__name__}.{check_arrays.__name__}")
