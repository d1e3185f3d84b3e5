"""Progress of a run on the console: a plain table, also in log files, and on a terminal a live bar below it."""

import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from io import StringIO
from math import isfinite, nan
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from hebbes.recording.standard_output import silence_stdout

if TYPE_CHECKING:
    from rich.progress import Progress

HEADER_EVERY = 20
"""Number of rows between two headers."""
_COLUMNS = {
    "gen": 5,
    "env steps": 11,
    "mean": 9,
    "max": 9,
    "mean policy": 11,
    "rank": 4,
    "best": 9,
    "steps/s": 8,
    "elapsed": 8,
    "left": 8,
}
_DROP_ORDER = ("left", "rank", "steps/s", "elapsed", "mean policy", "max", "env steps", "best")
"""Columns that are dropped on a narrow terminal, in this order. The bar also shows the first one."""


class Console:
    """Shows the rows of metrics.csv as they come. Use it as a context manager, which clears the bar at the end.

    A line is printed for the first generation, for every `print_every`-th one and for the last. The bar is updated in
    every generation. A stream that is not a terminal gets only plain text. A terminal that is too narrow for the table
    gets fewer columns.
    """

    def __init__(self, total_generations: int, *, max_env_steps: int | None, print_every: int, stream: TextIO) -> None:
        """The two budgets tell how much is left. `max_env_steps` is None if only the generations limit the run."""
        self._total_generations = total_generations
        self._max_env_steps = max_env_steps
        self._print_every = print_every
        self._stream = stream
        self._lines = 0
        self._columns: Sequence[str] = ()
        self._unprinted: Mapping[str, float] | None = None
        self._progress = self._make_bar() if stream.isatty() else None

    def _make_bar(self) -> "Progress":
        from rich.console import Console as Terminal  # slow, and only terminals need it
        from rich.progress import BarColumn, Progress, TextColumn

        # We compute the time left ourselves, because rich does not know the budget of env steps.
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

    def show_generation(self, row: Mapping[str, float]) -> None:
        """Shows one generation's row, with the column names of `hebbes.recording.metrics.METRICS`."""
        generation = int(row["generation"])
        if self._lines == 0 or generation % self._print_every == 0 or generation >= self._total_generations:
            self._print_row(row)
        else:
            self._unprinted = row
        if self._progress is not None:
            mean = _format_number(row["return_mean"])
            self._progress.update(
                self._task,
                description=f"generation {generation}/{self._total_generations}, mean {mean}",
                completed=self._compute_fraction_done(row),
                left=_format_duration(self._estimate_seconds_left(row)),
            )

    def print_message(self, text: str) -> None:
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
            self._columns = _choose_columns(None if self._progress is None else self._progress.console.width)
            self._print_cells({name: name for name in _COLUMNS})
        self._print_cells(
            {
                "gen": f"{row['generation']:.0f}",
                "env steps": f"{row['env_steps']:,.0f}",
                "mean": _format_number(row["return_mean"]),
                "max": _format_number(row["return_max"]),
                "mean policy": _format_number(row["mean_policy_return"]),
                "rank": _format_number(row["mean_policy_rank"], decimals=0),
                "best": _format_number(row["best_score"]),
                "steps/s": f"{row['env_steps_per_second']:,.0f}",
                "elapsed": _format_duration(row["seconds"]),
                "left": _format_duration(self._estimate_seconds_left(row)),
            }
        )
        self._lines += 1
        self._unprinted = None

    def _print_cells(self, cells: Mapping[str, str]) -> None:
        self.print_message(" ".join(cells[name].rjust(_COLUMNS[name]) for name in self._columns))

    def _compute_fraction_done(self, row: Mapping[str, float]) -> float:
        """Finished fraction of the run, by generations or by env steps, whichever ends it first."""
        by_generations = row["generation"] / self._total_generations
        by_env_steps = row["env_steps"] / self._max_env_steps if self._max_env_steps else 0.0
        return min(1.0, max(by_generations, by_env_steps))

    def _estimate_seconds_left(self, row: Mapping[str, float]) -> float:
        fraction = self._compute_fraction_done(row)
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


def _choose_columns(width: int | None) -> list[str]:
    """The columns that fit into `width` characters. All columns if `width` is None."""
    names = list(_COLUMNS)
    for name in _DROP_ORDER:
        if width is None or len(" ".join("x" * _COLUMNS[each] for each in names)) <= width:
            break
        names.remove(name)
    return names


def _format_number(value: float, *, decimals: int = 2) -> str:
    if not isfinite(value):
        return "-"
    return f"{value:.{decimals}f}" if abs(value) < 1e6 else f"{value:.3e}"


def _format_duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds))) if isfinite(seconds) else "-"
