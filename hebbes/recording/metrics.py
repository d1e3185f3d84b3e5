"""metrics.csv: one row a generation."""

import csv
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from jaxtyping import Float64

from hebbes.files.appended_file import AppendedFile
from hebbes.files.atomic_file import write_atomically

METRICS_CSV = "metrics.csv"

METRICS: Mapping[str, str] = {
    "generation": "generations finished, counted from 1",
    "env_steps": "environment steps of all training episodes so far",
    "return_mean": "mean over the population of a member's return",
    "return_std": "standard deviation over the population of a member's return",
    "return_max": "best member's return",
    "return_min": "worst member's return",
    "unperturbed_return": "return of the unperturbed policy on the population's start states",
    "unperturbed_rank": "its rank within the population; 1 means that no member beat it",
    "failed_members": "members that met a non-finite reward, observation or output; left out of the returns above",
    "eval_return": "mean return of the unperturbed policy over fresh episodes; empty when not evaluated",
    "best_score": "highest eval_return so far, the score of best.dat; empty before the first evaluation",
    "sigma": "standard deviation of the noise on the parameters, their mean where there is one a parameter",
    "update_norm": "Euclidean length of this generation's change of the parameters",
    "mean_norm": "Euclidean length of the unperturbed policy's parameters",
    "update_over_sigma": "root mean square over the parameters of this change in units of their sigma",
    "tied_share": "share of the members with a fitness that another one has too",
    "gradient_norm": "Euclidean length of the gradient estimate, for strategies that sum utility times noise",
    "gradient_agreement": "cosine between the estimates of two halves of the members; 0 is noise, 1 is all signal",
    "lr": "learning rate",
    "num_members": "perturbed members of the population",
    "episode_length_mean": "mean over the population's episodes of their length in environment steps",
    "saturated_actions": "share of the numbers of Box actions that lie within 1 % of the range from a bound",
    "policy_seconds_share": "share of the generation's wall time in which policies act",
    "simulator_seconds_share": "the same for simulators and wrappers",
    "update_seconds_share": "the same for asking and telling the strategy",
    "env_steps_per_second": "environment steps of this generation over its wall time, evaluation left out",
    "seconds": "wall time of the training so far, in seconds, pauses before a resume left out",
}
"""Every column that a training run may write, and what it means; those of the search differ by strategy."""


class MetricsWriter:
    """Appends rows to metrics.csv; every row is on disk, or on its way there, when `write` returns.

    Rows that a full disk refuses are kept and written with the next one.
    """

    def __init__(self, path: Path, generation: int = 0) -> None:
        """Goes on behind the row of `generation`: later ones, which a run cut short has left, are dropped.

        ValueError for a file that holds no metrics.
        """
        self._path = path
        found = path.read_bytes() if path.exists() else b""
        kept, self._columns = _rows_until(path, found, generation)
        if found != kept:
            write_atomically(path, kept)
        self._file, self._has_written = AppendedFile(path), False

    def write(self, row: Mapping[str, float]) -> None:
        """Appends one row; the first one fixes the columns. NaN becomes an empty cell, other floats keep every bit.

        Rows of an earlier version of this program that have other columns are set aside in a file beside.
        """
        if self._columns is not None and set(row) != set(self._columns):
            missing, new = sorted(set(self._columns) - set(row)), sorted(set(row) - set(self._columns))
            if self._has_written:
                raise ValueError(f"metrics: a row must have the first row's columns; missing {missing}, new {new}")
            self._set_aside(int(row["generation"]) - 1)
        header = b""
        if self._columns is None:
            self._columns = list(row)
            header = _line(self._columns)
        self._has_written = True
        self._file.write(header + _line([_cell(row[name]) for name in self._columns]))

    def _set_aside(self, generation: int) -> None:
        self._file.close()
        self._path.replace(self._path.with_name(f"{self._path.stem}.until-{generation}{self._path.suffix}"))
        self._columns = None
        self._file = AppendedFile(self._path)

    def sync(self) -> None:
        """Makes the rows so far survive a power cut."""
        self._file.sync()

    def close(self) -> None:
        """Closes the file; calling it twice is harmless."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def missing_rows(path: Path, generation: int) -> int:
    """How many of the rows up to a generation are damaged or not there; ValueError for a file that holds no metrics."""
    kept, _ = _rows_until(path, path.read_bytes() if path.exists() else b"", generation)
    return generation - max(0, kept.count(b"\n") - 1)


def _rows_until(path: Path, data: bytes, generation: int) -> tuple[bytes, list[str] | None]:
    """The whole rows of a metrics.csv up to a generation, and its columns; None if it has no rows."""
    lines = data.splitlines(keepends=True)
    if generation == 0 or not lines:
        return b"", None
    columns = lines[0].decode(errors="replace").strip().split(",")
    if "generation" not in columns:
        raise ValueError(f"{path} holds no metrics; move it away")
    place = columns.index("generation")
    rows = [line for line in lines[1:] if _is_row(line, len(columns), place, generation)]
    return b"".join([lines[0], *rows]), columns


def _is_row(line: bytes, num_columns: int, place: int, last: int) -> bool:
    """Whether a line is a whole row of a generation up to the last."""
    cells = line.decode(errors="replace").rstrip("\n").split(",")
    try:
        return line.endswith(b"\n") and len(cells) == num_columns and 0 < _numbers(cells)[place] <= last
    except ValueError:
        return False


def _numbers(cells: Sequence[str]) -> list[float]:
    return [float(cell or "nan") for cell in cells]


def _line(cells: Sequence[str]) -> bytes:
    return (",".join(cells) + "\n").encode()


def _cell(value: float) -> str:
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return "" if isnan(value) else repr(float(value))


def read_metrics(path: Path) -> dict[str, Float64[np.ndarray, " generations"]]:
    """The columns of a metrics.csv by name; empty cells are NaN."""
    with path.open(newline="", encoding="utf-8") as file:
        columns, *rows = list(csv.reader(file)) or [[]]
    if not columns:
        raise ValueError(f"{path}: no metrics in this file")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            raise ValueError(f"{path}: row {number} has {len(row)} cells, expected {len(columns)}")
    try:
        values = np.array([_numbers(row) for row in rows], dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return dict(zip(columns, values.reshape(len(rows), len(columns)).T, strict=True))
