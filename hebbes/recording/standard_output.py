"""Standard output: what is said there, by whom, and what happens where nobody reads it."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


@contextmanager
def only_results_on_stdout() -> Iterator[TextIO]:
    """Gives the real standard output, while whatever else writes there, a user's own code too, writes to stderr."""
    sys.stdout.flush()
    results = os.fdopen(os.dup(_stdout()), "w")
    os.dup2(2, _stdout())
    try:
        yield results
    finally:
        with suppress(OSError):  # what a flush could not write is known to who asked for it
            results.close()


def say(text: str) -> None:
    """Prints a line on standard output; if nobody reads it any more, it goes nowhere."""
    try:
        print(text, flush=True)
    except OSError:
        silence_stdout()


def silence_stdout() -> None:
    """Sends standard output nowhere from here on, with what it still holds and a full disk or a closed pipe refused."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _stdout())
    os.close(nowhere)


def _stdout() -> int:
    """The descriptor of standard output, which is not 1 in a program: see `hebbes.programs.startup`."""
    assert sys.__stdout__ is not None
    return sys.__stdout__.fileno()


def try_to_write(what: str, write: Callable[[], None]) -> bool:
    """Writes, and returns whether that could be done; if not, a line says why."""
    try:
        write()
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        print(f"no {what}: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
        return False
    return True


def print_all(text: str) -> None:
    """Prints what was asked for; ends the program with one line and status 1 where standard output does not take it."""
    if not try_to_write("output", lambda: print(text, flush=True)):
        silence_stdout()
        sys.exit(1)


def stop_message(error: Exception) -> str:
    """What to print of an error that ended the work: its details, if any, then the line that says what happened."""
    line, _, details = str(error).partition("\n")
    return "\n".join(filter(None, (details.rstrip(), f"stopped: {line}")))
