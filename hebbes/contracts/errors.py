"""Errors of other people's code: told in one line, shown once, printed where somebody may read them."""

import sys
import traceback
from contextlib import suppress

REASON_LENGTH = 200
"""Characters to a reason at most."""

_shown: set[tuple[type[BaseException], str, int | None]] = set()


def reason(error: BaseException) -> str:
    """The exception in one short line."""
    try:
        text = str(error)
    except Exception:  # a user's exception may fail at this too
        text = "<its text cannot be had>"
    return f"{type(error).__name__}: {text}".split("\n", 1)[0][:REASON_LENGTH]


def report(error: BaseException) -> str:
    """The exception in one line, then its traceback."""
    return f"{reason(error)}\n{''.join(traceback.format_exception(error))}"


def show_once(what: str, error: BaseException) -> None:
    """Says, with the traceback, the first exception of its type from its line of code in this process."""
    frames = traceback.extract_tb(error.__traceback__)
    origin = (type(error), frames[-1].filename, frames[-1].lineno)
    if origin not in _shown:
        _shown.add(origin)
        say(f"{what}; from here on this is counted, not shown:\n{report(error)}")


def say(text: str) -> None:
    """Prints on standard error at once; never raises, since nobody may be there to read it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)
