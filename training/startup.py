"""What a program does first, before its modules are loaded, which takes a second or two."""

import os
import signal
import sys


def begin() -> None:
    """Lets Ctrl-C end the program without a traceback while modules are loaded, and keeps standard output for itself.

    A standard stream that is closed is opened: without a descriptor it would lend its number to the next file that is
    opened, and simulators print into whatever has that number. What they print to descriptor 1, in worker processes
    too, goes to standard error.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode))
    own = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    for name in ("stdout", "__stdout__"):
        setattr(sys, name, own)
    os.dup2(2, 1)
