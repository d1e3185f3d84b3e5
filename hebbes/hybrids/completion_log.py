"""CompletionLog: the order in which the jobs of an asynchronous run were completed, which its results depend on.

One line of JSON for each completion: its number, the seed of the run, the job, and the versions of the job's inputs. A
line is written before the completion has an effect. So a run that was killed, and goes on from an older checkpoint, can
take the completions after it in the same order, and gets the same bits. So does a new run of the same options. Runs of
several seeds may share a file, one after the other.
"""

import json
import os
from collections.abc import Mapping
from functools import reduce
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any, TypeAlias

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import say

Entry: TypeAlias = Mapping[str, Any]

_START = b'{"completion": '
"""Of every line, also of one that a killed process has not ended."""


def extend_history(history: str, entry: Entry) -> str:
    """A checksum of all completions so far: of the history before this one, and of this one."""
    return sha256(f"{history}{json.dumps(entry)}".encode()).hexdigest()


def _read_writable(path: Path) -> bytes:
    """The content of a file, empty if there is none. Nothing is left changed.

    ValueError for a folder or device, OSError if it cannot be written.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        path.open("xb").close()  # fails if another process has just made it, whose file must stay
        path.unlink()
        return b""
    if not S_ISREG(mode):
        raise ValueError("it must be a file")
    with path.open("a+b") as file:
        file.seek(0)
        return file.read()


class CompletionLog:
    """The entries of a seed that a file had at first, and a place for new ones. Without a file there are none."""

    def __init__(self, path: str | None, seed: int):
        """ValueError for a file that is no log, or cannot be written. Here it is neither made nor changed."""
        # a link may lead to a file that is not there yet
        self._path = None if path is None else Path(os.path.realpath(path))
        self._entries: dict[int, Entry] = {}
        self._size = self._whole = 0  # bytes of the file, and of its whole lines
        if self._path is None:
            return
        try:
            lines, newline, cut = _read_writable(self._path).rpartition(b"\n")
            self._whole, self._size = len(lines + newline), len(lines + newline + cut)
            if cut[: len(_START)] != _START[: len(cut)]:
                raise ValueError("its last line is not a completion")
            entries = [json.loads(line) for line in lines.splitlines()]
            self._entries = {entry["completion"]: entry for entry in entries if entry["seed"] == seed}
        except OSError as error:
            raise ValueError(f"completion_log {path} cannot be written: {error.strerror}") from None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"completion_log {path} is not the log of a run: {error}") from None

    def find(self, number: int) -> Entry | None:
        """The entry of this completion; None if the file has none."""
        return self._entries.get(number)

    def report_difference(self, number: int, history: str) -> None:
        """Prints one line if there is a file that cannot repeat a run with this history before this completion."""
        if self._path is None:
            return
        entries = [self._entries[each] for each in range(number) if each in self._entries]
        if len(entries) == number and reduce(extend_history, entries, "") == history:
            return
        differs = "lacks" if len(entries) < number else "has other"
        say(f"completion_log {self._path} {differs} completions before number {number}: it alone cannot repeat the run")

    def append(self, entry: Entry) -> None:
        """Writes an entry. When this returns, the operating system has it.

        A last line without its end, of a killed process, is cut off first. EngineError if the file cannot be written,
        or if another process has changed it.
        """
        if self._path is None:
            return
        line = json.dumps(entry).encode() + b"\n"
        try:
            with self._path.open("ab") as file:
                if file.tell() != self._size:
                    raise EngineError(f"completion_log {self._path} was changed by another process")
                if self._whole < self._size:
                    file.truncate(self._whole)
                file.write(line)
        except OSError as error:
            raise EngineError(f"completion_log {self._path} cannot be written: {error.strerror}") from error
        self._whole = self._size = self._whole + len(line)
