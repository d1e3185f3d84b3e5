"""Console: what a program prints while it works, and on a terminal a live view of what it does."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self, TextIO

from hebbes.recording.standard_output import make_printable, silence_stdout
from hebbes.recording.terminal import SIZE, Terminal, can_draw, find_size, is_terminal, shows_unicode

PHASE_SECONDS = 1.0
"""A phase shows its duration once it is longer."""


@dataclass
class _Phase:
    """Something that is being done."""

    what: str
    count: Callable[[], tuple[int, int]] | None
    counted: str
    begun: float = field(default_factory=time.monotonic)

    def describe(self) -> str:
        """What is being done, and how much of it is left."""
        done, total = (0, 0) if self.count is None else self.count()
        return f"{self.what}: {done:,} of {total:,} {self.counted}" if done < total else self.what


@dataclass
class _View:
    """What is shown on a terminal."""

    phases: list[_Phase] = field(default_factory=list)
    find_details: Callable[[int], Sequence[str]] = lambda width: ()


class Console:
    """Prints lines on a stream. On a terminal it also shows a view below them, while it is entered: what is being done.

    A quiet console prints notices alone, on standard error, and a silent one nothing. Lines that the stream refuses,
    because a disk is full or nobody reads it any more, are lost without an error.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        """`stream` is standard output by default."""
        self._stream = sys.stdout if stream is None else stream
        self.is_quiet, self._is_silent = quiet, False
        self._view = _View()
        self._terminal: Terminal | None = None
        self.has_unicode = shows_unicode(self._stream)
        self.has_colors = not os.environ.get("NO_COLOR")

    def make_silent(self) -> "Console":
        """A console that prints nothing, and whose phases are shown in the view of this one."""
        silent = Console(self._stream, quiet=True)
        silent._view, silent._is_silent = self._view, True
        return silent

    def show_details(self, find_details: Callable[[int], Sequence[str]]) -> None:
        """Adds lines to the view, which the function returns for a terminal of so many columns, in another thread."""
        self._view.find_details = find_details

    @property
    def is_live(self) -> bool:
        """Whether it shows a view."""
        return self._terminal is not None

    @property
    def width(self) -> int:
        """Columns of the terminal. Other streams get lines for 80."""
        return find_size(self._stream).columns if is_terminal(self._stream) else SIZE.columns

    def print_message(self, text: str) -> None:
        """Prints a line, or several."""
        if self.is_quiet or self._stream is None:  # the latter where a script began without standard output
            return
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        line = f"{text}\n".encode(encoding, "backslashreplace").decode(encoding)
        try:
            if self._terminal is None:
                self._stream.write(line)
                self._stream.flush()
            else:
                self._terminal.print_above(line)
        except (OSError, ValueError) as error:  # the latter if it is closed
            if isinstance(error, OSError) and self._stream in (sys.stdout, sys.__stdout__):
                silence_stdout()
            self.is_quiet = True

    def print_notice(self, text: str) -> None:
        """Prints a line that a user must see: that something failed, or what to do about it."""
        if not self.is_quiet:
            self.print_message(text)
        elif not self._is_silent:
            Console(sys.stderr).print_message(text)

    @contextmanager
    def phase(
        self, what: str, count: Callable[[], tuple[int, int]] | None = None, counted: str = "episodes"
    ) -> Iterator[None]:
        """Shows what is being done. Phases may contain phases.

        `count` returns how many of the things that are `counted` are done, and how many there are. Another thread calls
        it.
        """
        self._view.phases.append(_Phase(make_printable(what), count, counted))
        try:
            yield
        finally:
            self._view.phases.pop()

    def paint(self, text: str, color: int) -> str:
        """The text in a color, given by its number in escape sequences."""
        return f"\x1b[{color}m{text}\x1b[0m" if self.has_colors else text

    def _find_lines(self, size: os.terminal_size) -> list[str]:
        if self.is_quiet:
            return []
        phases = list(self._view.phases)
        seconds = time.monotonic() - phases[-1].begun if phases else 0.0
        texts = [phase.describe() for phase in phases] + [f"{seconds:.0f} s"] * (seconds >= PHASE_SECONDS)
        return [self.paint(line, 1) for line in fill_lines(texts, size.columns)] + list(
            self._view.find_details(size.columns)
        )

    def __enter__(self) -> Self:
        if can_draw(self._stream):
            self._terminal = Terminal(self._stream, self._find_lines).__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._terminal is not None:
            self._terminal.__exit__(*error)
            self._terminal = None


def fill_lines(texts: Sequence[str], width: int) -> list[str]:
    """Lines of at most so many columns, if no text is longer. A text is not divided."""
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + 3 + len(text) < width:
            lines[-1] += f"   {text}"
        else:
            lines.append(text)
    return lines
