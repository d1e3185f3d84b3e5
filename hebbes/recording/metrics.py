"""metrics.csv: one row for each unit of training, such as a generation."""

import re
from collections.abc import Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Self

import numpy as np
from jaxtyping import Float64

from hebbes.files.appended_file import AppendedFile
from hebbes.files.atomic_file import write_atomically
from hebbes.registry.former_names import rename_columns

METRICS_CSV = "metrics.csv"

MAX_ROW_BYTES = 2**16
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
    "mean_policy_lag": "individuals told while the mean policy's own episodes were played",
    "mean_policy_env_steps": "environment steps of the mean policy's own episodes, which env_steps leaves out",
    "is_rl": "1 for an individual that was trained by gradients, else 0",
    "rl_share": "share of the individuals that were trained by gradients: with generations, of those of this one; in "
    "the asynchronous hybrids (1 + number trained) / (2 + number of all) so far",
    "rl_parent_share": "share of the parents that were trained by gradients; the parents are the best half, which "
    "moves the mean; empty if none moves it",
    "mean_share": "share of the way to the individual by which the mean has moved; in one_plus_one_rl 1 if it was "
    "accepted, else 0",
    "success_rate": "how many of the last ten individuals replaced the mean, divided by ten; empty before the tenth",
    "mean_policy_rank": "rank of the mean policy by fitness without weight penalty; 1 means that no member was better",
    "failed_members": "members of which an episode failed: a number was not finite, the simulator raised an error or "
    "crashed, or the time ran out; not counted in the members' returns",
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
    "q_mean": "mean estimate of the actors' actions by the first critic, over the actors' gradient steps of this row; "
    "empty without any",
    "critic_steps": "gradient steps of the critics in this row",
    "actor_steps": "gradient steps of the actors in this row; actors that are trained at once take one together",
    "replay_size": "transitions in the replay",
    "work_seconds": "seconds that workers spent on the work of this row, added up; their number times the wall time, "
    "less this, is how long they waited",
    "job_wait_seconds": "seconds that the jobs of this row waited for a worker, were on their way or waited for the "
    "run, added up",
    "num_members": "perturbed members of the population",
    "episode_length_mean": "mean length of the population's episodes in environment steps, without failed ones",
    "saturated_actions": "share of the numbers of Box actions that are within 1 % of the range from a bound",
    "policy_seconds_share": "share of the generation's wall time in which policies act",
    "simulator_seconds_share": "share of the generation's wall time in which simulators and wrappers step",
    "update_seconds_share": "share of the generation's wall time in which the strategy is asked and told",
    "eval_return": "mean return of the mean policy over fresh episodes; empty if not evaluated, or if one of them "
    "failed",
    "best_score": "highest eval_return so far, the score of best.dat; empty while there is none",
    "env_steps_per_second": "environment steps of this generation divided by its wall time, without evaluation",
    "seconds": "wall time of the training so far in seconds, without pauses before a resume",
    "nodes": "nodes of the Ray cluster that do work",
    "workers": "workers on the nodes of the Ray cluster",
    "chunks_outstanding": "chunks, or other jobs, that are without an answer at the end of the row",
    "chunks_sent_again": "how often a chunk or job that was lost or late went to a further worker, since the start or "
    "the resume",
}
"""Every column that a training run may write, and its meaning. Some exist only for some trainers or strategies."""


class MetricsWriter:
    """Appends rows to metrics.csv. When `write` returns, the operating system has the row.

    Rows that a full disk refuses are kept and written with the next one.
    """

    def __init__(self, path: Path) -> None:
        """Goes on after the last row of the file, if it has any."""
        self._path, self._file = path, AppendedFile(path)
        with path.open(encoding="utf-8") as file:
            self._header = [name for name in file.readline().strip().split(",") if name]
        self._columns = list(self._header)
        """The header that the file should have."""
        self._names: frozenset[str] | None = None
        """Those of the first row."""
        self._waiting = b""
        """Rows that wait for the header."""

    def write(self, row: Mapping[str, float]) -> None:
        """Appends one row. NaN becomes an empty cell, other floats keep every bit.

        The first row may have other columns than those that the file has from before, as after a resume with another
        engine. What rows lack is empty. Later rows have the columns of the first one.
        """
        if self._names is None:
            self._names = frozenset(row)
            self._columns += [name for name in row if name not in self._columns]
        if row.keys() != self._names:
            missing, new = sorted(self._names - row.keys()), sorted(row.keys() - self._names)
            raise ValueError(f"metrics: a row must have the first row's columns; missing {missing}, new {new}")
        self._waiting += _format_line([_format_cell(row.get(name, nan)) for name in self._columns])
        self._flush()

    def _flush(self) -> None:
        if self._header != self._columns:
            self._add_columns()
        rows, self._waiting = self._waiting, b""
        self._file.write(rows)

    def _add_columns(self) -> None:
        """Writes the file anew, with the columns that it lacks. They are empty in the rows so far."""
        header, _, rows = self._path.read_bytes().partition(b"\n")  # an earlier attempt may have failed half-way
        lacking = b"," * (len(self._columns) - len(header.split(b",")))
        write_atomically(self._path, _format_line(self._columns) + rows.replace(b"\n", lacking + b"\n"))
        self._file.close()
        self._file, self._header = AppendedFile(self._path), self._columns

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
    return [f"{path} lacks the rows before {unit} {begins_at}"] if begins_at > 1 else []


def _format_line(cells: Sequence[str]) -> bytes:
    return (",".join(cells) + "\n").encode()


def _format_cell(value: float) -> str:
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return "" if isnan(value) else repr(float(value))


def read_metrics(path: Path) -> dict[str, Float64[np.ndarray, " units"]]:
    """The columns of a metrics.csv by name. The first one counts units and increases. Empty cells are NaN.

    A last line that is not finished is left out. Raises ValueError if the file has no rows, or damaged ones.
    """
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    finished = text[: text.rfind("\n") + 1]
    if finished.count("\n") < 2:
        raise ValueError(f"{path} has no rows yet")
    return _parse_table(path, finished)


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
