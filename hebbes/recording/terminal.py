"""The bottom lines of a terminal, which are drawn again and again below everything else that is printed.

The cursor waits at the start of the empty line above them. So what simulators and other processes print appears there
too and is not erased, the shell goes on there if the program is killed, and no resize leaves parts of lines behind.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, Self, TextIO

REFRESH_SECONDS = 0.25
SIZE = os.terminal_size((80, 24))
"""Of a terminal that does not tell its size."""

_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"
_WRAP_OFF, _WRAP_ON = "\x1b[?7l", "\x1b[?7h"


def find_size(stream: TextIO) -> os.terminal_size:
    """Columns and lines of a terminal."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return SIZE
    return size if size.columns and size.lines else SIZE


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal. One of the caller's own may lack `isatty`, or be closed."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def can_draw(stream: TextIO) -> bool:
    """Whether the stream is a terminal that obeys escape sequences."""
    return is_terminal(stream) and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def shows_unicode(stream: TextIO) -> bool:
    """Whether the encoding has all characters, and the user has not chosen the locale C."""
    language = os.environ.get("LC_ALL") or os.environ.get("LANG")  # Python itself changes LC_CTYPE
    return language not in ("C", "POSIX") and (getattr(stream, "encoding", None) or "").lower().startswith("utf")


class Terminal:
    """Keeps lines at the bottom of a terminal as long as it is entered. A thread draws them.

    Meanwhile standard output and standard error, if they are terminals, print above the lines. In the background the
    lines are not drawn.
    """

    def __init__(self, stream: TextIO, find_lines: Callable[[os.terminal_size], Sequence[str]]):
        """`find_lines` returns the lines for a terminal of this size. They may contain escape sequences of colors."""
        self._stream, self._find_lines = stream, find_lines
        self._lock = threading.RLock()  # the handler of a signal may interrupt its owner
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)
        self._is_drawn = False
        self._replaced: dict[str, tuple[_Above, TextIO]] = {}

    def print_above(self, text: str, stream: TextIO | None = None) -> None:
        """Prints text that ends in a newline, on the terminal or on `stream`; OSError if it is gone."""
        with self._lock:
            self._erase()
            stream = self._stream if stream is None else stream
            stream.write(text)
            stream.flush()
            self._draw()

    def _refresh(self) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone
            while not self._is_over.wait(REFRESH_SECONDS):
                with self._lock:
                    self._draw()

    def _draw(self) -> None:
        if self._is_over.is_set() or not self._is_in_foreground():
            return
        size = find_size(self._stream)
        lines = list(self._find_lines(size))[: max(0, size.lines - 2)]
        if not (lines or self._is_drawn):
            return
        self._is_drawn = bool(lines)
        rows = "\r\n".join(f"{_ERASE_LINE}{line}" for line in ["", *lines])
        up = f"\x1b[{len(lines)}A" if lines else ""
        self._write(f"\r{_WRAP_OFF}{rows}{_WRAP_ON}{_ERASE_BELOW}\r{up}")

    def _erase(self) -> None:
        if self._is_drawn and self._is_in_foreground():
            self._write(f"\r{_ERASE_BELOW}")

    def _write(self, text: str) -> None:
        """Writes past the stream's buffer, into which a signal's handler must not write."""
        data = text.encode(self._stream.encoding, "replace")
        while data:
            try:
                data = data[os.write(self._stream.fileno(), data) :]
            except BlockingIOError:  # another program on the terminal has set O_NONBLOCK
                select.select([], [self._stream.fileno()], [])

    def _is_in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):  # not the terminal that controls this process
            return True

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: erases the lines, which the thread draws again when the program goes on."""
        with self._lock:
            self._erase()
            os.kill(os.getpid(), signal.SIGSTOP)

    def __enter__(self) -> Self:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and is_terminal(stream):
                self._replaced[name] = _Above(self, stream), stream
                setattr(sys, name, self._replaced[name][0])
        if self._handles_stops():
            signal.signal(signal.SIGTSTP, self._stop)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()
        if self._handles_stops():
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        with suppress(OSError, ValueError):
            self._erase()
        for name, (above, stream) in self._replaced.items():
            above.print_rest()
            setattr(sys, name, stream)

    def _handles_stops(self) -> bool:
        in_main = threading.current_thread() is threading.main_thread()
        return in_main and signal.getsignal(signal.SIGTSTP) in (signal.SIG_DFL, self._stop)


class _Above:
    """A stream that prints whole lines above the lines of a terminal."""

    def __init__(self, terminal: Terminal, stream: TextIO):
        self._terminal, self._stream, self._rest = terminal, stream, ""

    def write(self, text: str) -> int:
        """Prints the lines that the text ends."""
        lines, newline, self._rest = f"{self._rest}{text}".rpartition("\n")
        if newline:
            self._terminal.print_above(lines + newline, self._stream)
        return len(text)

    def print_rest(self) -> None:
        """Prints an unfinished line."""
        if self._rest:
            with suppress(OSError):
                print(self._rest, file=self._stream, flush=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
