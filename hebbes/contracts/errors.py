"""Errors in other people's code: described in one line, shown once, printed on standard error."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

REASON_LENGTH = 200
"""The largest number of characters in a reason."""

_shown: set[tuple[type[BaseException], str, int | None]] = set()


class ForeignExitError(RuntimeError):
    """Other people's code called `sys.exit`."""


@contextmanager
def convert_foreign_exits() -> Iterator[None]:
    """Turns `sys.exit` in other people's code into a ForeignExitError. An exit of ours, as after a signal, passes."""
    try:
        yield
    except SystemExit as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        if Path(__file__).parents[1] in Path(place.filename).parents:
            raise
        raise ForeignExitError(f"{place.filename}, line {place.lineno}, called sys.exit({error.code!r})") from error


def describe_error(error: BaseException) -> str:
    """The exception in one short line."""
    try:
        text = str(error)
    except Exception:  # a user's exception may fail here too
        text = "<its text cannot be had>"
    return f"{type(error).__name__}: {text}".split("\n", 1)[0][:REASON_LENGTH]


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


def say(text: str) -> None:
    """Prints on standard error at once. Never raises, because the stream may be closed."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)
