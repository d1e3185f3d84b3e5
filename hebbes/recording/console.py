"""Progress of a run: a table that reads the same in a log file, and on a terminal a live bar below it."""

import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from io import StringIO
from math import isfinite, nan
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console as Terminal
from rich.progress import BarColumn, Progress, TextColumn

from hebbes.recording.standard_output import silence_stdout

HEADER_EVERY = 20
"""Lines of the table between two headers."""
_COLUMNS = {
    "gen": 5,
    "env steps": 11,
    "mean": 9,
    "max": 9,
    "unperturbed": 11,
    "rank": 4,
    "best": 9,
    "steps/s": 8,
    "elapsed": 8,
    "left": 8,
}
_LESS_NEEDED = ("left", "rank", "steps/s", "elapsed", "unperturbed", "max", "env steps", "best")
"""Columns that a narrow terminal goes without, in this order; the first is in the bar too."""


class Console:
    """Shows the rows of metrics.csv as they come; use it as a context manager, which clears the bar at the end.

    A line is printed for the first generation, for every `print_every`-th one and for the last; the bar follows
    every generation. Nothing but plain text is written to a stream that is not a terminal. A terminal that is too
    narrow for the table gets fewer columns.
    """

    def __init__(self, total_generations: int, *, max_env_steps: int | None, print_every: int, stream: TextIO) -> None:
        """The budgets tell how much is left; `max_env_steps` is None where only the generations bound the run."""
        self._total_generations = total_generations
        self._max_env_steps = max_env_steps
        self._print_every = print_every
        self._stream = stream
        self._lines = 0
        self._columns: Sequence[str] = ()
        self._unprinted: Mapping[str, float] | None = None
        self._progress = self._bar() if stream.isatty() else None

    def _bar(self) -> Progress:
        # The task's text comes from us, never from the clock: what is left also depends on the budget of env steps.
        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:3.0f} %  {task.fields[left]} left"),
            console=Terminal(file=self._stream),
            refresh_per_second=4,
            transient=True,
            expand=True,
        )
        self._task = progress.add_task("first generation", total=1.0, left="-")
        return progress

    def generation(self, row: Mapping[str, float]) -> None:
        """Takes one generation's row, with the names of `hebbes.recording.metrics.METRICS`."""
        generation = int(row["generation"])
        if self._lines == 0 or generation % self._print_every == 0 or generation >= self._total_generations:
            self._print_row(row)
        else:
            self._unprinted = row
        if self._progress is not None:
            self._progress.update(
                self._task,
                description=f"generation {generation}/{self._total_generations}, mean {_number(row['return_mean'])}",
                completed=self._fraction(row),
                left=_duration(self._seconds_left(row)),
            )

    def message(self, text: str) -> None:
        """Prints a line between the rows."""
        if self._progress is None:
            try:
                self._stream.write(f"{text}\n")
                self._stream.flush()
            except OSError:
                if self._stream is sys.stdout:
                    silence_stdout()
                self._stream = StringIO()
        else:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _print_row(self, row: Mapping[str, float]) -> None:
        if self._lines % HEADER_EVERY == 0:
            self._columns = _fitting(None if self._progress is None else self._progress.console.width)
            self._print_cells({name: name for name in _COLUMNS})
        self._print_cells(
            {
                "gen": f"{row['generation']:.0f}",
                "env steps": f"{row['env_steps']:,.0f}",
                "mean": _number(row["return_mean"]),
                "max": _number(row["return_max"]),
                "unperturbed": _number(row["unperturbed_return"]),
                "rank": _number(row["unperturbed_rank"], decimals=0),
                "best": _number(row["best_score"]),
                "steps/s": f"{row['env_steps_per_second']:,.0f}",
                "elapsed": _duration(row["seconds"]),
                "left": _duration(self._seconds_left(row)),
            }
        )
        self._lines += 1
        self._unprinted = None

    def _print_cells(self, cells: Mapping[str, str]) -> None:
        self.message(" ".join(cells[name].rjust(_COLUMNS[name]) for name in self._columns))

    def _fraction(self, row: Mapping[str, float]) -> float:
        """Part of the run that is done: of the generations or of the env steps, whichever ends it first."""
        by_generations = row["generation"] / self._total_generations
        by_env_steps = row["env_steps"] / self._max_env_steps if self._max_env_steps else 0.0
        return min(1.0, max(by_generations, by_env_steps))

    def _seconds_left(self, row: Mapping[str, float]) -> float:
        fraction = self._fraction(row)
        return row["seconds"] * (1 - fraction) / fraction if fraction else nan

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._unprinted is not None:
            self._print_row(self._unprinted)
        if self._progress is not None:
            self._progress.stop()


def _fitting(width: int | None) -> list[str]:
    """The columns that a line of so many characters has room for; all where its length is not limited."""
    names = list(_COLUMNS)
    for name in _LESS_NEEDED:
        if width is None or len(" ".join("x" * _COLUMNS[each] for each in names)) <= width:
            break
        names.remove(name)
    return names


def _number(value: float, *, decimals: int = 2) -> str:
    if not isfinite(value):
        return "-"
    return f"{value:.{decimals}f}" if abs(value) < 1e6 else f"{value:.3e}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds))) if isfinite(seconds) else "-"
