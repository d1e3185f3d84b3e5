"""RecordedRuns: the scores of runs that are done, in a CSV file that goes from one machine to the next."""

import csv
import io
import shlex
from pathlib import Path
from threading import Lock

from benchmarks.planned_runs import PlannedRun
from hebbes.files.atomic_file import write_atomically
from hebbes.files.folder_lock import wait_for_lock
from hebbes.files.policy_file import read_policy_file
from hebbes.training.saved_runs import BEST

COLUMNS = ("environment", "run", "case", "mean_return", "options", "device", "commit")
"""A case is the environment, or it with one of its morphologies. Device and commit are those in `best.dat`; there is no
device without gradient steps."""


class RecordedRuns:
    """The runs in a file, to which several threads and programs may add others. Without a file nothing is kept.

    A file that cannot be read raises ValueError.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, Lock()
        self._rows = _read_rows(path) if path is not None and path.exists() else []

    def find_scores(self, run: PlannedRun) -> dict[str, float]:
        """Case -> mean return of a run that was done here or elsewhere; empty if it was not.

        ValueError if the recorded run had other options.
        """
        rows = [row for row in self._rows if (row["environment"], row["run"]) == (run.environment, run.folder.name)]
        wanted = _format_options(run)
        if rows and rows[0]["options"] != wanted:
            raise ValueError(f"{self._path}: {run.folder.name} had {rows[0]['options']}, and the study has {wanted}")
        return {row["case"]: float(row["mean_return"]) for row in rows} or run.read_scores()

    def add(self, run: PlannedRun) -> None:
        """Adds a run that is done here, unless it is known, and writes the file."""
        same = {"environment": run.environment, "run": run.folder.name}
        if self._path is None:
            return
        place = self._path.with_name(f"{self._path.name}.lock")  # its folder may be locked by this program
        place.touch()
        with self._lock, wait_for_lock(place):
            self._rows = _read_rows(self._path) if self._path.exists() else []
            if any(same.items() <= row.items() for row in self._rows):
                return
            provenance = read_policy_file(run.folder / BEST).provenance
            same |= {
                "options": _format_options(run),
                "device": provenance["options"].get("device", ""),
                "commit": provenance["hebbes"],
            }
            scores = run.read_scores()
            self._rows += [{**same, "case": case, "mean_return": repr(score)} for case, score in scores.items()]
            text = io.StringIO()
            writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self._rows)
            write_atomically(self._path, text.getvalue().encode())


def _format_options(run: PlannedRun) -> str:
    return shlex.join(word for name, value in sorted(run.options.items()) for word in (name, value))


def _read_rows(path: Path) -> list[dict[str, str]]:
    try:
        reader = csv.DictReader(io.StringIO(path.read_text()), strict=True)
        rows = list(reader)
        if tuple(reader.fieldnames or ()) != COLUMNS or any(None in row or None in row.values() for row in rows):
            raise ValueError(f"its columns are not {', '.join(COLUMNS)}")
        for row in rows:
            float(row["mean_return"])
    except (OSError, csv.Error, ValueError) as error:
        raise ValueError(f"--recorded {path} cannot be read: {error}") from None
    return rows
