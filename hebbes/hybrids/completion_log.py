"""CompletionLog: the order in which the jobs of an asynchronous run were completed, which its results depend on.

One line of JSON for each completion: its number, the seed of the run, the job, and the versions of the job's inputs. A
line is written before the completion has an effect. So a run that was killed, and goes on from an older checkpoint, can
take the completions after it in the same order, and gets the same bits. So does a new run of the same options. Runs of
several seeds may share a file, one after the other.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

Entry: TypeAlias = Mapping[str, Any]


class CompletionLog:
    """The entries of a seed that a file had at first, and a place for new ones. Without a file there are none."""

    def __init__(self, path: str | None, seed: int):
        """ValueError for a file that is no log, or cannot be written. Here it is neither made nor changed."""
        try:  # a link may lead to a file that is not there yet
            self._path = None if path is None else Path(path).resolve()
        except RuntimeError:
            raise ValueError(f"completion_log {path} cannot be written: its links lead back to it") from None
        self._entries: dict[int, Entry] = {}
        self._whole: int | None = None  # bytes of the whole lines, if another line follows
        if self._path is None:
            return
        is_new = not self._path.exists()
        if not (is_new or self._path.is_file()):
            raise ValueError(f"completion_log must be a file, got {path!r}")
        try:
            with self._path.open("a+b") as file:
                file.seek(0)
                lines, newline, cut = file.read().rpartition(b"\n")
            if is_new:
                self._path.unlink()
            self._whole = len(lines + newline) if cut else None
            entries = [json.loads(line) for line in lines.splitlines()]
            self._entries = {entry["completion"]: entry for entry in entries if entry["seed"] == seed}
        except OSError as error:
            raise ValueError(f"completion_log {path} cannot be written: {error.strerror}") from None
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"completion_log {path} is not the log of a run: {error}") from None

    def find(self, number: int) -> Entry | None:
        """The entry of this completion; None if the file has none."""
        return self._entries.get(number)

    def append(self, entry: Entry) -> None:
        """Writes an entry. When this returns, the operating system has it. OSError names the file.

        A last line without its end, of a killed process, is cut off first.
        """
        if self._path is None:
            return
        try:
            with self._path.open("a") as file:
                if self._whole is not None:
                    file.truncate(self._whole)
                    self._whole = None
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error
