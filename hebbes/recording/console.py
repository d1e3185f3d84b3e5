"""Progress of a run on the console: a plain table, also in log files, and on a terminal a live bar below it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from io import StringIO
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Self, TextIO

from hebbes.recording.standard_output import silence_stdout

if TYPE_CHECKING:
    from rich.progress import Progress

HEADER_EVERY = 20
"""Number of rows between two headers."""


def _format_number(value: float, *, decimals: int = 2) -> str:
    if not isfinite(value):
        return "-"
    return f"{value:.{decimals}f}" if abs(value) < 1e6 else f"{value:.3e}"


def _format_count(value: float) -> str:
    return f"{value:,.0f}"


def _format_duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds))) if isfinite(seconds) else "-"


LEFT = "seconds_left"
"""A column that the console adds to each row."""
_COLUMNS: Mapping[str, tuple[str, int, Callable[[float], str]]] = {
    "generation": ("gen", 5, "{:.0f}".format),
    "env_steps": ("env steps", 11, _format_count),
    "return_mean": ("mean", 9, _format_number),
    "return_max": ("max", 9, _format_number),
    "mean_policy_return": ("mean policy", 11, _format_number),
    "mean_policy_rank": ("rank", 4, partial(_format_number, decimals=0)),
    "best_score": ("best", 9, _format_number),
    "env_steps_per_second": ("steps/s", 8, _format_count),
    "seconds": ("elapsed", 8, _format_duration),
    LEFT: ("left", 8, _format_duration),
    "nodes": ("nodes", 5, _format_count),
    "workers": ("workers", 7, _format_count),
    "chunks_outstanding": ("out", 4, _format_count),
    "chunks_sent_again": ("again", 5, _format_count),
}
"""Column of a row -> its title, width and format. The first column of a row is shown even if it is not among these."""
_DROP_ORDER = (
    *(LEFT, "chunks_outstanding", "mean_policy_rank", "nodes", "chunks_sent_again", "env_steps_per_second"),
    *("seconds", "workers"),
    *("mean_policy_return", "return_max", "env_steps", "best_score"),
)
"""Columns that are dropped on a narrow terminal, in this order. The bar also shows the first one."""


class Console:
    """Shows the rows of metrics.csv as they come. Use it as a context manager, which clears the bar at the end.

    The first column of a row counts them. A line is printed for the first row, for every `print_every`-th one and for
    the last. The bar is updated with every row. A stream that is not a terminal gets only plain text. A terminal that
    is too narrow for the table gets fewer columns.
    """

    def __init__(self, budgets: Mapping[str, int | None], *, print_every: int, stream: TextIO) -> None:
        """`budgets` are the values of columns that end the run, whichever comes first. None: the column does not."""
        self._budgets = {name: most for name, most in budgets.items() if most is not None}
        self._print_every = print_every
        self._stream = stream
        self._lines = 0
        self._columns: Sequence[str] = ()
        self._unprinted: Mapping[str, float] | None = None
        self._progress = self._make_bar() if stream.isatty() else None

    def _make_bar(self) -> "Progress":
        from rich.console import Console as Terminal  # slow, and only terminals need it
        from rich.progress import BarColumn, Progress, TextColumn

        # We compute the time left ourselves, because rich knows only one budget.
        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:3.0f} %  {task.fields[left]} left"),
            console=Terminal(file=self._stream),
            refresh_per_second=4,
            transient=True,
            expand=True,
        )
        self._task = progress.add_task("begins", total=1.0, left="-")
        return progress

    def show(self, row: Mapping[str, float]) -> None:
        """Shows a row, with the column names of `hebbes.recording.metrics.METRICS`."""
        unit, count = next(iter(row.items()))
        most = self._budgets.get(unit, inf)
        fraction = min(1.0, max((row[name] / limit for name, limit in self._budgets.items()), default=0.0))
        row = {**row, LEFT: row["seconds"] * (1 - fraction) / fraction if fraction else nan}
        if self._lines == 0 or count % self._print_every == 0 or count >= most:
            self._print_row(row)
        else:
            self._unprinted = row
        if self._progress is not None:
            total = f"/{most}" if isfinite(most) else ""
            mean = f", mean {_format_number(row['return_mean'])}" if "return_mean" in row else ""
            title, left = f"{unit} {int(count)}{total}{mean}", _format_duration(row[LEFT])
            self._progress.update(self._task, description=title, completed=fraction, left=left)

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
            self._columns = _choose_columns(row, None if self._progress is None else self._progress.console.width)
            self._print_cells({name: _describe_column(name)[0] for name in self._columns})
        self._print_cells({name: _describe_column(name)[2](row[name]) for name in self._columns})
        self._lines += 1
        self._unprinted = None

    def _print_cells(self, cells: Mapping[str, str]) -> None:
        self.print_message(" ".join(cell.rjust(_describe_column(name)[1]) for name, cell in cells.items()))

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._unprinted is not None:
            self._print_row(self._unprinted)
        if self._progress is not None:
            self._progress.stop()


def _describe_column(name: str) -> tuple[str, int, Callable[[float], str]]:
    """Title, width and format of a column."""
    return _COLUMNS.get(name, (name, max(5, len(name)), _format_count))


def _choose_columns(row: Mapping[str, float], width: int | None) -> list[str]:
    """The columns of the row that fit into `width` characters. All that are known if `width` is None."""
    first = next(iter(row))
    names = [first, *(name for name in _COLUMNS if name in row and name != first)]
    for name in _DROP_ORDER:
        if width is None or sum(_describe_column(each)[1] + 1 for each in names) - 1 <= width:
            break
        names = [each for each in names if each != name]
    return names
