"""The shapes and types in annotations are checked while the tests run.

jaxtyping's import hook wraps the functions and the dataclasses of hebbes. A call with an array of another shape, of
another type of numbers, or with axes that contradict each other then raises `jaxtyping.TypeCheckError`. Where no array
is in a signature, nothing is checked: mypy checks plain types, our own code checks options, and the suite would take
much longer. Worker processes, and programs that a test starts, import the modules without the hook: there they run as
for a user.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import jaxtyping
from jaxtyping import jaxtyped
from typeguard import typechecked

ROOT = Path(__file__).parent.parent
CHECKED_ROOMS = sorted(file.parent.name for file in (ROOT / "hebbes").glob("*/__init__.py"))
"""Folders of hebbes whose modules are checked: all of them."""

REFUSALS: list[str] = []
"""What the checks have refused since a test began. Code that expects a TypeError could swallow a refusal: so a test
fails if there are any (see conftest.py)."""

CALLS: Counter[Callable] = Counter()
"""Calls of each function since a test began."""

MOST_CALLS = 100
"""Checks of a function in one test. Thousands would take longer than everything else."""


def has_arrays(item: Callable | type) -> bool:
    """Whether an array is in the signature of a function, or among the fields of a dataclass."""
    owners = item.__mro__ if isinstance(item, type) else (item,)
    return any("ndarray" in str(hint) for owner in owners for hint in inspect.get_annotations(owner).values())


def wrap_arrays(*, typechecker: Callable) -> Callable:
    """`jaxtyping.jaxtyped`, but only for what has arrays, and only for the first `MOST_CALLS` of a test."""

    def wrap(item: Callable | type) -> Callable | type:
        if not has_arrays(item):
            return item
        if not isinstance(item, type):
            return check_first_calls(item, jaxtyped(item, typechecker=typechecker))
        made: Any = item
        plain, made = made.__init__, jaxtyped(made, typechecker=typechecker)
        made.__init__ = check_first_calls(plain, made.__init__)
        return made

    return wrap


def check_first_calls(plain: Callable, checked: Callable) -> Callable:
    """A function that is `checked` the first `MOST_CALLS` times in a test, and `plain` after these."""

    @wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        CALLS[plain] += 1
        return (checked if CALLS[plain] <= MOST_CALLS else plain)(*args, **kwargs)

    return call


def begin_test() -> None:
    """Forgets refusals and calls. Called before each test."""
    REFUSALS.clear()
    CALLS.clear()


def check_types(function: Callable) -> Callable:
    """The function with its types checked."""
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
    jaxtyping.jaxtyped = wrap_arrays  # the hook decorates all functions and classes with it
    jaxtyping.install_import_hook(list_checked_modules(), f"{__name__}.{check_types.__name__}")
