"""What a program does first, before its modules are loaded, which takes a second or two."""

import os
import signal
import sys


def begin() -> None:
    """Lets Ctrl-C end the program without a traceback while modules are loaded, and opens what is closed to it.

    A standard stream without a descriptor would lend its number to the next file that is opened, and simulators print
    into whatever has that number.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode))
