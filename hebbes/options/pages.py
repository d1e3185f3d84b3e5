"""Writes the pages that are made from options, presets and metrics: `python -m hebbes.options.pages docs`."""

import sys
from collections.abc import Callable
from pathlib import Path

from hebbes.files.atomic_file import write_atomically
from hebbes.options.flag_tables import format_flags
from hebbes.options.preset_tables import format_presets
from hebbes.recording.metrics import METRICS

MARK = "<!-- Below this line the page is made by `python -m hebbes.options.pages docs`. -->"


def format_metrics() -> str:
    """A table of the columns of metrics.csv, in Markdown."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in METRICS.items()]
    return "\n".join(["## Columns", "", "| column | meaning |", "|---|---|", *rows])


PAGES: dict[str, Callable[[], str]] = {
    "flags.md": format_flags,
    "logging.md": format_metrics,
    "presets.md": format_presets,
}
"""Page -> what makes the part of it below the mark."""


def main() -> None:
    """Replaces what follows the mark in the pages of the folder that the first argument names."""
    for name, make in PAGES.items():
        path = Path(sys.argv[1]) / name
        prose, _, _ = path.read_text().partition(MARK)
        write_atomically(path, f"{prose}{MARK}\n\n{make()}".encode())


if __name__ == "__main__":
    main()
