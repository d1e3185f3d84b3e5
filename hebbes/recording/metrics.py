"""metrics.csv: one row for each unit of training, such as a generation."""

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
from hebbes.registry.former_names import FORMER_COLUMNS

METRICS_CSV = "metrics.csv"

METRICS: Mapping[str, str] = {
    "generation": "generations finished, counted from 1",
    "env_steps": "environment steps of all training episodes so far",
    "return_mean": "mean over the population of a member's return",
    "return_std": "standard deviation over the population of a member's return",
    "return_max": "best member's return",
    "return_min": "worst member's return",
    "mean_policy_return": "return of the mean policy on the population's start states",
    "mean_policy_rank": "rank of that return within the population; 1 means that no member was better",
    "failed_members": "members with a non-finite reward, observation or output; not counted in the returns above",
    "sigma": "standard deviation of the noise on the parameters; the mean if each parameter has its own",
    "update_norm": "Euclidean length of this generation's change of the parameters",
    "mean_norm": "Euclidean length of the mean policy's parameters",
    "update_over_sigma": "root mean square over the parameters of this generation's change divided by sigma",
    "tied_share": "share of the members that have the same fitness as another member",
    "gradient_norm": "Euclidean length of the gradient estimate, for strategies that sum utility times noise",
    "gradient_agreement": "cosine between the gradient estimates of two halves of the members; 0 is noise, 1 is signal",
    "learning_rate": "learning rate",
    "num_members": "perturbed members of the population",
    "episode_length_mean": "mean length of the population's episodes in environment steps",
    "saturated_actions": "share of the numbers of Box actions that are within 1 % of the range from a bound",
    "policy_seconds_share": "share of the generation's wall time in which policies act",
    "simulator_seconds_share": "the same for simulators and wrappers",
    "update_seconds_share": "the same for asking and telling the strategy",
    "eval_return": "mean return of the mean policy over fresh episodes; empty if not evaluated",
    "best_score": "highest eval_return so far, the score of best.dat; empty before the first evaluation",
    "env_steps_per_second": "environment steps of this generation divided by its wall time, without evaluation",
    "seconds": "wall time of the training so far in seconds, without pauses before a resume",
}
"""Every column that a training run may write, and its meaning. Some columns exist only for some strategies."""


class MetricsWriter:
    """Appends rows to metrics.csv. When `write` returns, the operating system has the row.

    Rows that a full disk refuses are kept and written with the next one.
    """

    def __init__(self, path: Path, unit: str, units: int = 0) -> None:
        """Continues after the row whose column `unit` is `units`. Later rows, of an interrupted run, are dropped.

        Raises ValueError if the file holds no metrics.
        """
        self._path, self._unit = path, unit
        found = path.read_bytes() if path.exists() else b""
        kept, self._columns = _keep_rows_until(path, found, unit, units)
        if found != kept:
            write_atomically(path, kept)
        self._file, self._has_written = AppendedFile(path), False

    def write(self, row: Mapping[str, float]) -> None:
        """Appends one row. The first one fixes the columns. NaN becomes an empty cell, other floats keep every bit.

        If an earlier version of this program wrote rows with other columns, the old file is renamed and kept.
        """
        if self._columns is not None and set(row) == set(_rename_former_columns(self._columns)) != set(self._columns):
            self._rename_columns(_rename_former_columns(self._columns))
        if self._columns is not None and set(row) != set(self._columns):
            missing, new = sorted(set(self._columns) - set(row)), sorted(set(row) - set(self._columns))
            if self._has_written:
                raise ValueError(f"metrics: a row must have the first row's columns; missing {missing}, new {new}")
            self._set_aside(int(row[self._unit]) - 1)
        header = b""
        if self._columns is None:
            self._columns = list(row)
            header = _format_line(self._columns)
        self._has_written = True
        self._file.write(header + _format_line([_format_cell(row[name]) for name in self._columns]))

    def _rename_columns(self, columns: list[str]) -> None:
        self._file.close()
        _, _, rows = self._path.read_bytes().partition(b"\n")
        write_atomically(self._path, _format_line(columns) + rows)
        self._columns, self._file = columns, AppendedFile(self._path)

    def _set_aside(self, units: int) -> None:
        self._file.close()
        self._path.replace(self._path.with_name(f"{self._path.stem}.until-{units}{self._path.suffix}"))
        self._columns = None
        self._file = AppendedFile(self._path)

    def sync(self) -> None:
        """Forces all rows so far onto the disk, so that they survive a power cut."""
        self._file.sync()

    def close(self) -> None:
        """Closes the file. Calling it twice is harmless."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def count_missing_rows(path: Path, unit: str, units: int) -> int:
    """Number of damaged or missing rows up to a unit. Raises ValueError if the file holds no metrics."""
    kept, _ = _keep_rows_until(path, path.read_bytes() if path.exists() else b"", unit, units)
    return units - max(0, kept.count(b"\n") - 1)


def _keep_rows_until(path: Path, data: bytes, unit: str, units: int) -> tuple[bytes, list[str] | None]:
    """The header and the undamaged rows of a metrics.csv up to a unit, and its columns (None if it has none)."""
    lines = data.splitlines(keepends=True)
    if units == 0 or not lines:
        return b"", None
    columns = lines[0].decode(errors="replace").strip().split(",")
    if unit not in columns:
        raise ValueError(f"{path} holds no metrics; move it away")
    place = columns.index(unit)
    rows = [line for line in lines[1:] if _is_row(line, len(columns), place, units)]
    return b"".join([lines[0], *rows]), columns


def _rename_former_columns(columns: Sequence[str]) -> list[str]:
    """The columns under their current names, except where another column has that name."""
    return [name if FORMER_COLUMNS.get(name) in columns else FORMER_COLUMNS.get(name, name) for name in columns]


def _is_row(line: bytes, num_columns: int, place: int, last: int) -> bool:
    """Whether a line is a complete row of a unit up to `last`."""
    cells = line.decode(errors="replace").rstrip("\n").split(",")
    try:
        return line.endswith(b"\n") and len(cells) == num_columns and 0 < _parse_numbers(cells)[place] <= last
    except ValueError:
        return False


def _parse_numbers(cells: Sequence[str]) -> list[float]:
    return [float(cell or "nan") for cell in cells]


def _format_line(cells: Sequence[str]) -> bytes:
    return (",".join(cells) + "\n").encode()


def _format_cell(value: float) -> str:
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return "" if isnan(value) else repr(float(value))


def read_metrics(path: Path) -> dict[str, Float64[np.ndarray, " generations"]]:
    """The columns of a metrics.csv by name. Empty cells are NaN. Raises ValueError if the file is damaged."""
    with path.open(newline="", encoding="utf-8") as file:
        columns, *rows = list(csv.reader(file)) or [[]]
    if not columns:
        raise ValueError(f"{path}: no metrics in this file")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            raise ValueError(f"{path}: row {number} has {len(row)} cells, expected {len(columns)}")
    try:
        values = np.array([_parse_numbers(row) for row in rows], dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return dict(zip(_rename_former_columns(columns), values.reshape(len(rows), len(columns)).T, strict=True))
