"""The shapes and types in annotations are checked while the tests run.

jaxtyping's import hook wraps the functions and the dataclasses of hebbes. A call with an array of another shape, of
another type of numbers, or with axes that contradict each other then raises `jaxtyping.TypeCheckError`. Of a list of
arrays one is checked, by chance. Nothing else is checked: mypy checks plain types, and our own code checks options. Of
each function and dataclass, the first calls in a test are checked and some later ones: loops make tens of thousands.
Worker processes, and programs that a test starts, import the modules without the hook: there they run as for a user.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import jaxtyped

from tests.python_process import ROOT

CHECKED_SUBPACKAGES = sorted(file.parent.name for file in (ROOT / "hebbes").glob("*/__init__.py"))
"""Folders of hebbes whose modules are checked: all of them."""

CHECK = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""As typing has it, an int is a float."""

REFUSALS: list[str] = []
"""What the checks have refused since a test began. Code that expects a TypeError could swallow a refusal: so a test
fails if there are any (see conftest.py)."""

CHECKED_CALLS, SAMPLED_CALLS = 20, 200
"""How many calls of a function are checked in a test: all of the first ones, and every tenth of the later ones."""

CALLS: Counter[Callable] = Counter()
"""How often each function was called since a test began."""


def begin_test() -> None:
    """Forgets what the test before has called, and what was refused in it."""
    REFUSALS.clear()
    CALLS.clear()


def has_arrays(item: Callable | type) -> bool:
    """Whether an array is in the signature of a function, or among the fields of a dataclass."""
    owners = item.__mro__ if isinstance(item, type) else (item,)
    return any(map(find_arrays, owners))


def find_arrays(owner: Callable | type) -> dict[str, Any]:
    """The annotations with an array in them."""
    return {name: hint for name, hint in inspect.get_annotations(owner).items() if "ndarray" in str(hint)}


def wrap_arrays(*, typechecker: Callable) -> Callable:
    """`jaxtyping.jaxtyped`, but only for what has arrays, and for some calls in a test."""

    def wrap(item: Any) -> Any:
        if not has_arrays(item):
            return item
        if not isinstance(item, type):
            return check_some_calls(item, jaxtyped(item, typechecker=typechecker))
        construct = item.__init__
        checked = jaxtyped(item, typechecker=typechecker)
        if checked.__init__ is not construct:
            checked.__init__ = check_some_calls(construct, checked.__init__)
        return checked

    return wrap


def is_checked(number: int) -> bool:
    """Whether the call of this number in a test is checked."""
    return number <= CHECKED_CALLS or (number <= SAMPLED_CALLS and number % 10 == 0)


def check_some_calls(function: Callable, checked: Callable) -> Callable:
    """Calls `checked` or `function`, see `is_checked`."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        CALLS[function] += 1
        return (checked if is_checked(CALLS[function]) else function)(*args, **kwargs)

    return call


def check_types(function: Callable) -> Callable:
    """The function with its arrays checked."""
    function.__annotations__ = find_arrays(function)
    checked = CHECK(function)

    @wraps(function)
    def check(*args: Any, **kwargs: Any) -> Any:
        try:
            return checked(*args, **kwargs)
        except BeartypeCallHintViolation as refusal:
            REFUSALS.append(str(refusal))
            raise

    return check


def list_checked_modules() -> list[str]:
    """Modules of the checked subpackages. Without compiled kernels: numba cannot compile wrapped functions."""
    files = [
        file for subpackage in CHECKED_SUBPACKAGES for file in sorted((ROOT / "hebbes" / subpackage).rglob("*.py"))
    ]
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
