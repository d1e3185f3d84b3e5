"""Errors in other people's code: described in one line, shown once, printed on standard error."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

REASON_LENGTH = 200
"""The largest number of characters in a reason."""

_PASSED = (Exception, KeyboardInterrupt, GeneratorExit)
"""What `convert_foreign_exits` leaves to others, unless it is told to convert it."""

_shown: set[tuple[type[BaseException], str, int | None]] = set()


class ForeignExitError(RuntimeError):
    """Other people's code called `sys.exit`, or raised what is no Exception."""


@contextmanager
def convert_foreign_exits(*others: type[BaseException]) -> Iterator[None]:
    """Turns `sys.exit` in other people's code into a ForeignExitError, and so for `others`, such as KeyboardInterrupt.

    It does the same with a BaseException of their own, such as the PanicException of extensions in Rust. An exit of
    ours, as after a signal, passes, also one that a library has wrapped: Python 3.11 turns what is raised while a class
    is made into a RuntimeError.
    """
    try:
        yield
    except BaseException as error:
        if (ours := _find_our_exit(error)) is not None:
            raise ours from None
        if not isinstance(error, (SystemExit, *others)) and isinstance(error, _PASSED):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        did = f"called sys.exit({error.code!r})" if isinstance(error, SystemExit) else f"raised {describe_error(error)}"
        raise ForeignExitError(f"{place.filename}, line {place.lineno}, {did}") from error


def _find_our_exit(error: BaseException | None) -> SystemExit | None:
    """The exit of ours that an exception is or was raised from; None if there is none."""
    while error is not None and not isinstance(error, SystemExit):
        error = error.__cause__
    frames = [] if error is None else traceback.extract_tb(error.__traceback__)
    return error if frames and Path(__file__).parents[1] in Path(frames[-1].filename).parents else None


def describe_error(error: BaseException) -> str:
    """The exception in one short line."""
    try:
        text = str(error)
    except Exception:  # a user's exception may fail here too
        text = "<its text cannot be had>"
    return f"{type(error).__name__}: {text}".split("\n", 1)[0].removesuffix(": ")[:REASON_LENGTH]


def describe_system_error(error: OSError) -> str:
    """The path, if there is one, and what the system says.

    If a temporary file was to replace another one, the path is that of the other one.
    """
    path = error.filename2 or error.filename
    return f"{path}: {error.strerror}" if path else error.strerror or str(error)


@contextmanager
def prefix_errors(prefix: str) -> Iterator[None]:
    """Begins the message of a ValueError with this text."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{prefix}{error}") from error


def join_lines(error: BaseException) -> str:
    """The exception's text in one line."""
    return " ".join(str(error).split())


def describe_with_traceback(error: BaseException) -> str:
    """The exception in one line, then its traceback."""
    return f"{describe_error(error)}\n{''.join(traceback.format_exception(error))}"


def show_once(what: str, error: BaseException) -> None:
    """Prints an exception with its traceback, once in this process for each type and line of code that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    origin = (type(error), frames[-1].filename, frames[-1].lineno)
    if origin not in _shown:
        _shown.add(origin)
        say(f"{what}; from here on this is counted, not shown:\n{describe_with_traceback(error)}")


def close_part(name: str, part: Any) -> None:
    """Closes a part that is not needed any more. What it raises is shown, and goes no further."""
    try:
        part.close()
    except Exception as error:  # whatever a user's part raises
        show_once(f"{name} failed to close", error)


def say(text: str) -> None:
    """Prints on standard error at once. Never raises, because the stream may be closed."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)
