"""Programs on a real pseudo-terminal, and the screen that it would show."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

from tests.python_process import ROOT

_PARTS = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|(.)", re.DOTALL)
_FRAMES = re.compile(r"(?<=A)(?=\r\x1b\[\?7l)")
"""Between two drawings of the view: the first one ends by moving the cursor up."""
_UNFINISHED = re.compile(r"\x1b(\[\??[0-9;]*)?\Z")
"""The start of an escape sequence, at the end of what one read returned."""


class Screen:
    """What a terminal of this size shows: the subset of escape sequences that our programs use."""

    def __init__(self, columns=80, lines=24):
        self.columns, self.lines = columns, lines
        self.rows, self.row, self.column = [""], 0, 0  # all rows since the start; the last `lines` are visible
        self.wraps, self.num_wraps, self.num_cut = True, 0, 0

    def feed(self, text):
        for private, numbers, command, character in _PARTS.findall(text):
            if character:
                self._put(character)
            elif private:
                assert numbers in ("7", "25"), numbers
                self.wraps = command == "h" if numbers == "7" else self.wraps
            elif command == "A":
                self.row = max(len(self.rows) - self.lines, self.row - int(numbers or 1), 0)
            elif command == "K":
                self.rows[self.row] = self.rows[self.row][: self.column]
            elif command == "J":
                self.rows[self.row] = self.rows[self.row][: self.column]
                self.rows[self.row + 1 :] = [""] * len(self.rows[self.row + 1 :])
            else:
                assert command == "m", command

    def resize(self, columns, lines):
        """Wraps what no longer fits, as most terminals do."""
        rows, self.columns, self.lines = self.rows, columns, lines
        pieces = [[row[at : at + columns] for at in range(0, max(1, len(row)), columns)] for row in rows]
        self.rows, self.row = [piece for row in pieces for piece in row], sum(map(len, pieces[: self.row]))

    def _put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            if self.row == len(self.rows):
                self.rows.append("")
        elif character == "\x07":
            pass
        else:
            if self.column >= self.columns:
                if self.wraps:
                    self.num_wraps += 1
                    self._put("\n")
                    self.column = 0
                else:
                    self.num_cut += 1
                    self.column = self.columns - 1
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + character + row[self.column + 1 :]
            self.column += 1

    @property
    def text(self):
        """All rows, also those that have scrolled away."""
        return "\n".join(row.rstrip() for row in self.rows).rstrip("\n")

    @property
    def below(self):
        """The rows from that of the cursor on."""
        return "\n".join(row.rstrip() for row in self.rows[self.row :]).strip("\n")


class OnTerminal:
    """A program that runs on a terminal of its own. Its output is read by `read`."""

    def __init__(self, command, columns=80, lines=24, **environment):
        self.screen, self.raw, self.status = Screen(columns, lines), "", None
        self._frames: list[str] = []  # read, and not yet on the screen
        self._decoder, self._unfinished = codecs.getincrementaldecoder("utf-8")("replace"), ""
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(ROOT)
            known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
            known |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
            os.execvpe(command[0], command, {name: value for name, value in known.items() if value is not None})
        self.resize(columns, lines)
        self._keep_what_is_unread()

    def resize(self, columns, lines):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(columns, lines)

    def _keep_what_is_unread(self):
        """Ctrl-C and Ctrl-Z would otherwise make the kernel drop what a slow reader has not read, even half a line."""
        attributes = termios.tcgetattr(self.terminal)
        attributes[3] |= termios.NOFLSH
        termios.tcsetattr(self.terminal, termios.TCSANOW, attributes)

    def read(self, until=lambda screen: False, timeout=180.0):
        """Reads until the screen is so, or the program has ended; returns whether the screen was so.

        A slow reader gets several frames at once, and looks at each.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if until(self.screen):
                return True
            if self._frames:
                frame = self._frames.pop(0)
                self.raw += frame
                self.screen.feed(frame)
                continue
            if not select.select([self.terminal], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self.terminal, 65536)
            except OSError:
                data = b""
            if not data:
                self.end()
                return until(self.screen)
            text = self._unfinished + self._decoder.decode(data)
            cut = _UNFINISHED.search(text)
            self._unfinished = cut.group() if cut else ""
            self._frames += _FRAMES.split(text.removesuffix(self._unfinished))
        raise AssertionError(f"nothing in {timeout} s: {self.screen.text}")

    def send(self, keys):
        os.write(self.terminal, keys)

    def end(self):
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.terminal)
        return self.status


def start(program, *flags, **options):
    """One of the scripts at the root, or any other arguments of Python."""
    return OnTerminal([sys.executable, program, *map(str, flags)], **options)
