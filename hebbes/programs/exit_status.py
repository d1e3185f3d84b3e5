"""How the programs end: with one line and status 2 after bad input, with status 128 + signal after a signal."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from hebbes.contracts.errors import ForeignExitError, convert_foreign_exits, describe_system_error, say
from hebbes.execution.parents_signals import PARENTS_SIGNALS
from hebbes.recording.standard_output import make_printable

SAME_SIGNAL_SECONDS = 0.5
"""A signal that comes again within this time is one signal: `timeout` sends it to the program and to its group."""


@contextmanager
def report_errors_in_one_line() -> Iterator[None]:
    """Turns a user's mistake into one line and status 2: a ValueError, a TypeError, or a path that cannot be used.

    It does the same with `sys.exit` in the user's own code, which would otherwise look like a normal end.
    """
    try:
        with convert_foreign_exits():
            yield
    except OSError as error:
        _refuse(describe_system_error(error))
    except (ValueError, TypeError, ForeignExitError) as error:
        _refuse(str(error))


def _refuse(message: str) -> NoReturn:
    say(f"{Path(sys.argv[0]).name}: error: {make_printable(' '.join(message.split()))}")
    sys.exit(2)


@contextmanager
def end_cleanly_on_signals() -> Iterator[None]:
    """Ends the program after a signal with status 128 + signal: after saving and closing, or at once at a second one.

    In both cases worker processes end with the program, and no file is left half written. A SIGHUP that `nohup` ignored
    from the start is still ignored.
    """
    ignored = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else set()
    handled = [number for number in PARENTS_SIGNALS if number not in ignored]
    terminal = sys.stdout.fileno() if sys.stdout.isatty() else None

    def leave(number: int, _: object) -> NoReturn:
        signaled_at = time.monotonic()

        def leave_unless_it_is_the_same(again: int, frame: object) -> None:
            if again != number or time.monotonic() > signaled_at + SAME_SIGNAL_SECONDS:
                leave_at_once(again, frame)

        for other in handled:
            signal.signal(other, leave_unless_it_is_the_same)
        _write_if_read(2, b"stopping; again to stop at once\n")
        raise SystemExit(128 + number)

    def leave_at_once(number: int, _: object) -> NoReturn:
        if terminal is not None:
            _write_if_read(terminal, b"\x1b[J")  # the console's view, which is below the cursor
        _write_if_read(2, b"stopped at once; --resume goes on from the last checkpoint of a training run\n")
        os._exit(128 + number)

    for number in handled:
        signal.signal(number, leave)
    try:
        with convert_foreign_exits(KeyboardInterrupt, GeneratorExit):  # Ctrl-C is a signal, and raises an exit of ours
            yield
    except ForeignExitError as error:
        say(f"stopped: {error}")
        sys.exit(1)
    finally:
        for number in handled:  # all is done; at its exit the interpreter would restore the default actions
            signal.signal(number, signal.SIG_DFL if _has_lasting_threads() else signal.SIG_IGN)


def _write_if_read(descriptor: int, text: bytes) -> None:
    """Writes if somebody still reads: the same signal may have ended `tee`, or the terminal may be gone."""
    with suppress(OSError):
        os.write(descriptor, text)


def _has_lasting_threads() -> bool:
    """Whether a thread, such as one of a user's simulator, keeps the interpreter from its exit."""
    return any(not each.daemon and each is not threading.main_thread() for each in threading.enumerate())
