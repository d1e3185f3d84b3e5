"""Writing to standard output, also when it is full or nobody reads it any more."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from hebbes.contracts.errors import describe_system_error, say


@contextmanager
def reserve_stdout_for_results() -> Iterator[TextIO]:
    """Yields the real standard output. Everything else that writes there, also a user's code, goes to stderr."""
    sys.stdout.flush()
    assert sys.__stdout__ is not None
    encoding, errors = sys.__stdout__.encoding, sys.__stdout__.errors
    results = os.fdopen(os.dup(_get_stdout_descriptor()), "w", encoding=encoding, errors=errors)
    os.dup2(2, _get_stdout_descriptor())
    try:
        yield results
    finally:
        with suppress(OSError):  # the flush that failed has already raised
            results.close()


def make_printable(text: str) -> str:
    """The text with control characters as escapes such as \\x1b, so that no terminal and no table obeys them."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def silence_stdout() -> None:
    """Discards standard output from now on, including what a full disk or a closed pipe has refused so far."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _get_stdout_descriptor())
    os.close(nowhere)


def _get_stdout_descriptor() -> int:
    """The file descriptor of standard output. In our programs it is not 1: see `hebbes.programs.startup`."""
    assert sys.__stdout__ is not None
    return sys.__stdout__.fileno()


def try_to_write(what: str, write: Callable[[], object]) -> bool:
    """Calls `write` and returns whether it succeeded. If not, a line on stderr says why."""
    try:
        write()
    except (OSError, ValueError, KeyError) as error:
        say(f"no {what}: {' '.join(_describe(error).split()) or type(error).__name__}")
        return False
    return True


def print_or_exit(text: str) -> None:
    """Prints the text. If standard output refuses it, ends the program with one line on stderr and status 1."""
    if not try_to_write("output", lambda: print(text, flush=True)):
        silence_stdout()
        sys.exit(1)


def format_stop_message(error: Exception) -> str:
    """The message for an error that ended the work: its details, if any, then the line that says what happened."""
    line, _, details = _describe(error).partition("\n")
    return "\n".join(filter(None, (details.rstrip(), f"stopped: {line}")))


def _describe(error: Exception) -> str:
    return describe_system_error(error) if isinstance(error, OSError) else str(error)
