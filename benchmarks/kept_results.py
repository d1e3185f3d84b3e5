"""KeptResults: measurements in a JSON file, each written when it is there and not made again."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hebbes.files.atomic_file import write_atomically


class KeptResults:
    """Results by name. Without a path they are kept in memory alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.by_name: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def measure(self, jobs: Mapping[str, Callable[[], Any]]) -> None:
        """Calls the jobs whose results are missing, prints each result on stderr and writes the file."""
        for name, job in jobs.items():
            if name not in self.by_name:
                self.by_name[name] = job()
                print(name, self.by_name[name], file=sys.stderr, flush=True)
                if self._path is not None:
                    write_atomically(self._path, json.dumps(self.by_name, indent=1).encode())
