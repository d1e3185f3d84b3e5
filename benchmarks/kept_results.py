"""KeptResults: measurements in a JSON file, each written when it is there and not made again."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hebbes.execution.provenance import find_conditions
from hebbes.files.atomic_file import write_atomically

MADE_WITH = "made_with"
"""Key of the settings, the commit and the processor, next to the results."""


class KeptResults:
    """Results by name. Without a path they are kept in memory alone.

    SystemExit for a file whose results were made with other settings, another commit or on another processor.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any] | None = None) -> None:
        here = find_conditions()
        self._path, self._made_with = path, {**(settings or {}), **{name: here[name] for name in ("hebbes", "cpu")}}
        self.by_name: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}
        there = self.by_name.pop(MADE_WITH, {}) if self.by_name else self._made_with
        if there != self._made_with:
            raise SystemExit(f"{path} has results of {there}, and these would be of {self._made_with}; take a new file")

    def measure(self, jobs: Mapping[str, Callable[[], Any]]) -> None:
        """Calls the jobs whose results are missing, prints each result on stderr and writes the file."""
        for name, job in jobs.items():
            if name not in self.by_name:
                self.by_name[name] = job()
                print(name, self.by_name[name], file=sys.stderr, flush=True)
                if self._path is not None:
                    text = json.dumps({MADE_WITH: self._made_with, **self.by_name}, indent=1)
                    write_atomically(self._path, text.encode())
