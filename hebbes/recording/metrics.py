"""metrics.csv: one row for each unit of training, such as a generation."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isnan
from pathlib import Path
from typing import Self

import numpy as np
from jaxtyping import Float64

from hebbes.files.appended_file import AppendedFile
from hebbes.files.atomic_file import write_atomically
from hebbes.registry.former_names import rename_columns

METRICS_CSV = "metrics.csv"

MAX_ROW_BYTES = 2**16
_ASIDE = re.compile(r"metrics\.until-(\d{1,18})\.csv")
"""Names of files with rows that were set aside."""

METRICS: Mapping[str, str] = {
    "generation": "generations finished, counted from 1",
    "episode": "episodes finished, counted from 1",
    "individual": "individuals finished, counted from 1, those with random actions at the start included",
    "env_steps": "environment steps of all training episodes so far",
    "return": "return of the episode: with exploration noise in td3, without noise in the asynchronous hybrids; "
    "of random actions at the start of both",
    "episode_length": "length of the episode in environment steps",
    "return_mean": "mean over the population of a member's return",
    "return_std": "standard deviation over the population of a member's return",
    "return_max": "best member's return",
    "return_min": "worst member's return",
    "rl_return_mean": "mean return of the members trained by gradients in this generation; empty if there are none",
    "es_return_mean": "mean return of the other members",
    "mean_policy_return": "return of the mean policy on the population's start states, if all members share these; "
    "in the asynchronous hybrids its mean over episodes of its own",
    "mean_policy_lag": "individuals that have moved the search since that mean policy was the mean",
    "mean_policy_env_steps": "environment steps of those episodes, which env_steps leaves out",
    "is_rl": "1 for an individual that was trained by gradients, else 0",
    "rl_share": "share of the individuals so far that were trained by gradients, each kind counted from 1; with "
    "generations, of those of this one",
    "rl_parent_share": "share of the members that move the mean, the best half, that was trained by gradients; empty "
    "if none moves it",
    "mean_share": "share of the way to the individual by which the mean has moved; in one_plus_one_rl 1 if it was "
    "accepted, else 0",
    "success_rate": "share of the last ten individuals that have taken the mean's place; empty before the tenth",
    "mean_policy_rank": "rank of the mean policy by fitness without weight penalty; 1 means that no member was better",
    "failed_members": "members with a non-finite reward, observation or output; not counted in the returns above",
    "sigma": "standard deviation of the noise on the parameters; if each has its own, their mean, or root mean square "
    "(cma_es, sep_cma_es, xnes, cr_fm_nes)",
    "update_norm": "Euclidean length of this generation's change of the parameters",
    "mean_norm": "Euclidean length of the mean policy's parameters",
    "update_over_sigma": "root mean square over the parameters of this generation's change divided by sigma",
    "tied_share": "share of the members that have the same fitness as another member",
    "gradient_norm": "Euclidean length of the gradient estimate, for strategies that sum utility times noise",
    "gradient_agreement": "cosine between the gradient estimates of two halves of the members; 0 is noise, 1 is signal",
    "learning_rate": "learning rate",
    "critic_loss": "mean squared errors of both critics, added, over the gradient steps of this row; empty without any",
    "q_mean": "mean over these steps of the first critic's estimate of the actors' actions; empty without any",
    "critic_steps": "gradient steps of the critics",
    "actor_steps": "gradient steps of the actors; actors that are trained at once take one together",
    "replay_size": "transitions in the replay",
    "work_seconds": "seconds that workers spent on the work of this row, added up; their number times the wall time, "
    "less this, is how long they waited",
    "job_wait_seconds": "seconds that these jobs waited for a worker, were on their way or waited for the run, "
    "added up",
    "num_members": "perturbed members of the population",
    "episode_length_mean": "mean length of the population's episodes in environment steps, without failed ones",
    "saturated_actions": "share of the numbers of Box actions that are within 1 % of the range from a bound",
    "policy_seconds_share": "share of the generation's wall time in which policies act",
    "simulator_seconds_share": "the same for simulators and wrappers",
    "update_seconds_share": "the same for asking and telling the strategy",
    "eval_return": "mean return of the mean policy over fresh episodes; empty if not evaluated, or if one of them "
    "failed",
    "best_score": "highest eval_return so far, the score of best.dat; empty while there is none",
    "env_steps_per_second": "environment steps of this generation divided by its wall time, without evaluation",
    "seconds": "wall time of the training so far in seconds, without pauses before a resume",
    "nodes": "nodes of the Ray cluster that do work",
    "workers": "workers on them",
    "chunks_outstanding": "chunks, or other jobs, that are without an answer at the end of the row",
    "chunks_sent_again": "how often one that was lost or late went to a further worker, since the start or the resume",
}
"""Every column that a training run may write, and its meaning. Some exist only for some trainers or strategies."""


class MetricsWriter:
    """Appends rows to metrics.csv. When `write` returns, the operating system has the row.

    Rows that a full disk refuses are kept and written with the next one.
    """

    def __init__(self, path: Path, unit: str) -> None:
        """Goes on after the last row of the file, if it has any. Column `unit` counts the units of training."""
        self._path, self._unit, self._file = path, unit, AppendedFile(path)
        with path.open(encoding="utf-8") as file:
            self._columns = file.readline().strip().split(",")
        self._has_written = False
        self._aside: Path | None = None
        """The new name of a file with other columns, which could not be renamed yet."""
        self._waiting = b""
        """Rows that wait for it."""

    def write(self, row: Mapping[str, float]) -> None:
        """Appends one row. The first one fixes the columns. NaN becomes an empty cell, other floats keep every bit.

        If the file has other columns, as after a resume with another engine or version, it is renamed and kept.
        """
        header = b""
        if set(row) != set(self._columns):
            missing, new = sorted(set(self._columns) - set(row)), sorted(set(row) - set(self._columns))
            if self._has_written:
                raise ValueError(f"metrics: a row must have the first row's columns; missing {missing}, new {new}")
            if any(self._columns):
                self._aside = self._path.with_name(
                    f"{self._path.stem}.until-{int(row[self._unit]) - 1}{self._path.suffix}"
                )
            self._columns = list(row)
            header = _format_line(self._columns)
        self._has_written = True
        self._waiting += header + _format_line([_format_cell(row[name]) for name in self._columns])
        self._flush()

    def _flush(self) -> None:
        if self._aside is not None:
            with suppress(FileNotFoundError):  # it was renamed, but no new file could be made
                self._path.replace(self._aside)
            file = AppendedFile(self._path)
            self._file.close()
            self._file, self._aside = file, None
        rows, self._waiting = self._waiting, b""
        self._file.write(rows)

    def sync(self) -> None:
        """Forces all rows so far onto the disk, so that they survive a power cut."""
        self._flush()
        self._file.sync()

    def close(self) -> None:
        """Closes the file. Calling it twice is harmless."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def cut_metrics(path: Path, unit: str, units: int) -> list[str]:
    """Drops the rows after that whose column `unit` is `units`, of an interrupted run. Columns get their current names.

    Returns a line if the first rows are in no file. Raises ValueError if the file has rows, but a later one up to that
    is missing or damaged.
    """
    if path.exists() and not path.is_file():  # reading a pipe would wait
        raise ValueError(f"{path} is not a file; move it away")
    data = path.read_bytes() if path.exists() else b""
    first = re.match(rb"%s,.*\n(\d{1,18})," % unit.encode(), data)
    last = re.search(rb"^%d,.*\n" % units, data, re.MULTILINE)
    begins_at = units + 1
    if last:
        kept = data[: last.end()].decode(errors="replace")
        try:
            columns = _parse_table(path, kept)
        except ValueError as error:
            raise ValueError(f"{error}; move it away") from error
        found = columns.get(unit, np.empty(0)).tolist()
        begins_at -= len(found)
        if not found or found != list(range(begins_at, units + 1)):
            raise ValueError(f"{path} lacks rows before {unit} {units}; move it away")
        renewed = _format_line([*columns]) + kept.partition("\n")[2].encode()
        if renewed != data:  # else the learning curve would be older than its metrics
            write_atomically(path, renewed)
    elif not units or re.fullmatch(rb"(%s,.*\n)?" % unit.encode(), data) or (first and int(first[1]) > units):
        path.unlink(missing_ok=True)
    else:
        raise ValueError(f"{path} has no undamaged row of {unit} {units}; move it away")
    _rename_after_going_back(path.parent, units)
    if begins_at > 1 and not any(path.parent.glob(f"{path.stem}.until-*{path.suffix}")):
        return [f"{path} lacks the rows before {unit} {begins_at}"]
    return []


def _rename_after_going_back(folder: Path, units: int) -> None:
    """Rows that were set aside, some of them after `units`, get a name that no rows from now on will take."""
    for last_unit, path in _find_rows_aside(folder).items():
        target = path.with_name(f"metrics.until-{units}.csv")
        if last_unit > units and not target.exists():  # else all rows of the file are after `units`
            path.rename(target)


def _find_rows_aside(folder: Path) -> dict[int, Path]:
    """Last unit -> file, of the files with rows that were set aside, in order."""
    found = {int(name[1]): each for each in folder.iterdir() if (name := _ASIDE.fullmatch(each.name))}
    return dict(sorted(found.items()))


def _format_line(cells: Sequence[str]) -> bytes:
    return (",".join(cells) + "\n").encode()


def _format_cell(value: float) -> str:
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return "" if isnan(value) else repr(float(value))


def read_metrics(path: Path) -> dict[str, Float64[np.ndarray, " generations"]]:
    """The columns of a metrics.csv by name. Empty cells are NaN. Raises ValueError if the file is damaged."""
    return _parse_table(path, path.read_text("utf-8", errors="replace"))


def read_all_metrics(folder: Path) -> dict[str, Float64[np.ndarray, " units"]]:
    """The columns of all metrics of a run by name, with rows that were set aside. What a part lacks is NaN.

    The first column counts units and increases. A last line that is not finished is left out. Raises ValueError if the
    folder has no rows, or damaged ones.
    """
    paths = [path for path in (*_find_rows_aside(folder).values(), folder / METRICS_CSV) if path.is_file()]
    texts = {path: text for path in paths if (text := path.read_text("utf-8", errors="replace"))}
    tables = [_parse_table(path, text[: text.rfind("\n") + 1] or text) for path, text in texts.items()]
    next_unit = np.inf
    parts: list[dict[str, np.ndarray]] = []
    for table in reversed(tables):
        units = next(iter(table.values()))
        is_current = units < next_unit  # a resume from an earlier checkpoint has done the others again
        next_unit = min(units.min(initial=np.inf), next_unit)
        parts.insert(0, {name: column[is_current] for name, column in table.items()})
    sizes = [len(next(iter(part.values()))) for part in parts]
    if not sum(sizes):
        raise ValueError(f"{folder} has no metrics yet")
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate([part.get(name, np.full(size, np.nan)) for part, size in zip(parts, sizes, strict=True)])
        for name in names
    }


def has_rows(folder: Path) -> bool:
    """Whether the metrics of a run, or those that were set aside, have a finished row."""
    return any(map(read_last_row, (*_find_rows_aside(folder).values(), folder / METRICS_CSV)))


def read_last_row(path: Path) -> dict[str, float]:
    """The last finished row of a metrics.csv by column, without reading the others; empty if there is none."""
    if not path.is_file():  # opening a pipe would wait
        return {}
    try:
        with path.open("rb") as file:
            columns = file.readline().decode(errors="replace").strip().split(",")
            start = file.tell()
            file.seek(max(start, path.stat().st_size - MAX_ROW_BYTES))
            lines = file.read().decode(errors="replace").split("\n")[:-1]
        cells = lines[-1].split(",") if lines else []
        return dict(zip(rename_columns(columns), (float(cell or "nan") for cell in cells), strict=True))
    except (OSError, ValueError):
        return {}


def _parse_table(path: Path, text: str) -> dict[str, Float64[np.ndarray, " generations"]]:
    if not text:
        raise ValueError(f"{path}: no metrics in this file")
    columns, *rows = [line.split(",") for line in text.splitlines()]
    if len(set(columns)) < len(columns):
        raise ValueError(f"{path}: two columns have the same name")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            raise ValueError(f"{path}: row {number} has {len(row)} cells, expected {len(columns)}")
    try:
        values = np.array([[float(cell or "nan") for cell in row] for row in rows], dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return dict(zip(rename_columns(columns), values.reshape(len(rows), len(columns)).T, strict=True))
