"""How the programs end: 2 after bad input, with one line; 128 + signal when told to stop."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from hebbes.execution.worker_process import PARENTS_SIGNALS


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turns what a user got wrong, a ValueError or TypeError, into one line and status 2.

    So it does with `sys.exit` in code of the user's own, which would otherwise pass for the end of the program.
    """
    try:
        yield
    except SystemExit as error:
        if place := _foreign(error):
            print(f"{Path(sys.argv[0]).name}: error: {place} called sys.exit({error.code!r})", file=sys.stderr)
            sys.exit(2)
        raise
    except (ValueError, TypeError) as error:
        print(f"{Path(sys.argv[0]).name}: error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)


def _foreign(error: SystemExit) -> str:
    """Where the program was told to exit, if it was neither this package nor the parser of its flags; else empty."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    ours = Path(__file__).parents[1] in Path(place.filename).parents or place.filename == argparse.__file__
    return "" if ours else f"{place.filename}, line {place.lineno},"


@contextmanager
def signals_end_cleanly() -> Iterator[None]:
    """Ends the program with status 128 + signal, once everything has been saved and closed; at once at a second signal.

    Worker processes end with the program in either case, and no file is left half written. A SIGHUP that was ignored
    from the start, by `nohup`, still is.
    """
    ignored = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else set()
    heeded = [number for number in PARENTS_SIGNALS if number not in ignored]
    terminal = sys.stdout.fileno() if sys.stdout.isatty() else None

    def leave(number: int, _: object) -> NoReturn:
        for other in heeded:
            signal.signal(other, leave_at_once)
        os.write(2, b"stopping; again to stop at once\n")
        raise SystemExit(128 + number)

    def leave_at_once(number: int, _: object) -> NoReturn:
        if terminal is not None:
            os.write(terminal, b"\x1b[?25h")  # the cursor, which the progress bar hides
        os.write(2, b"stopped at once; --resume goes on from the last checkpoint of a training run\n")
        os._exit(128 + number)

    for number in heeded:
        signal.signal(number, leave)
    try:
        yield
    except SystemExit as error:
        if place := _foreign(error):
            print(f"stopped: {place} called sys.exit({error.code!r})", file=sys.stderr)
            sys.exit(1)
        raise
    finally:
        for number in heeded:  # all is done; on its way out the interpreter would put the default actions back
            signal.signal(number, signal.SIG_IGN)
