"""ProgressTable: the rows of metrics as a table of lines, and on a terminal the newest of them in a live view."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite, nan
from typing import Self

from hebbes.recording.console import Console, fill_lines
from hebbes.recording.sparkline import ASCII, BLOCKS, Sparkline

HEADER_EVERY = 20
"""Number of rows between two headers."""
ROW_SECONDS = 1.0
"""On a live console at most one row is printed in this time."""
MAX_BAR = 60
"""Most columns of the bar and of the sparkline."""


def format_integer(value: float) -> str:
    """An integer, without commas."""
    return f"{value:.0f}" if isfinite(value) else "-"


def format_return(value: float) -> str:
    """A return in eight characters at most."""
    if not isfinite(value):
        return "-"
    size = abs(value)
    if round(size, 2) < 1e4:
        return f"{value:.2f}"
    return f"{value:.0f}" if round(size) < 1e7 else f"{value:.1e}" if size < 9e99 else f"{value:.0e}"


def format_count(value: float) -> str:
    """A count below a trillion in nine characters at most."""
    if not isfinite(value):
        return "-"
    return f"{value:,.0f}" if value < 1e7 else f"{value / 1e6:,.1f}M" if value < 1e10 else f"{value / 1e9:,.1f}G"


def format_duration(seconds: float) -> str:
    """A duration of less than a thousand days in seven characters at most."""
    if not isfinite(seconds):
        return "-"
    whole = round(seconds)
    if whole < 10 * 3600:
        return str(timedelta(seconds=whole))
    hours, days = whole // 3600, whole // 86400
    return f"{hours}h{whole % 3600 // 60:02}m" if hours < 100 else f"{days}d{hours % 24:02}h"


@dataclass(frozen=True)
class Column:
    """How a column of metrics is shown."""

    title: str
    width: int
    format: Callable[[float], str]
    label: str = ""
    """Longer name of it in the view. Empty: its title will do."""


LEFT = "seconds_left"
"""A column that the table adds to each row."""
COLUMNS: Mapping[str, Column] = {
    "generation": Column("gen", 5, format_integer),
    "episode": Column("episode", 7, format_integer),
    "individual": Column("individual", 10, format_integer),
    "env_steps": Column("env steps", 9, format_count),
    "return": Column("return", 8, format_return),
    "return_mean": Column("mean", 8, format_return, "population mean"),
    "return_std": Column("std", 8, format_return),
    "return_max": Column("max", 8, format_return),
    "mean_policy_return": Column("policy", 8, format_return, "mean policy"),
    "mean_policy_rank": Column("rank", 4, format_integer),
    "eval_return": Column("eval", 8, format_return, "evaluation"),
    "best_score": Column("best", 8, format_return),
    "env_steps_per_second": Column("steps/s", 7, format_count),
    "seconds": Column("elapsed", 7, format_duration),
    LEFT: Column("left", 7, format_duration),
    "nodes": Column("nodes", 5, format_count),
    "workers": Column("workers", 7, format_count),
    "chunks_outstanding": Column("out", 4, format_count, "chunks out"),
    "chunks_sent_again": Column("again", 5, format_count, "sent again"),
}
"""Column of a row -> how it is shown. The first column of a row is shown even if it is not among these."""
_DROP_ORDER = (
    *("return_std", "eval_return", "seconds", "mean_policy_rank", "return_max", LEFT, "return_mean"),
    *("chunks_sent_again", "chunks_outstanding", "nodes", "env_steps_per_second", "workers", "return"),
    *("mean_policy_return", "env_steps", "best_score"),
)
"""Columns that are dropped where a row is too wide, in this order."""
_VIEWED = (
    *("mean_policy_return", "mean_policy_rank", "return_mean", "return_std", "return_max", "return", "eval_return"),
    *("best_score", "env_steps", "env_steps_per_second", "nodes", "workers", "chunks_outstanding", "chunks_sent_again"),
    *("seconds", LEFT),
)
"""Columns in the view, in this order."""


class ProgressTable:
    """Shows the rows of metrics.csv as they come. Use it as a context manager, which prints the last row at the end.

    The first column of a row counts them. No line is wider than the console. Columns are left out that do not fit.
    """

    def __init__(self, console: Console, budgets: Mapping[str, int | None]) -> None:
        """`budgets` are the values of columns that end the run, whichever comes first. None: the column does not."""
        self._console = console
        self._budgets = {name: most for name, most in budgets.items() if most is not None}
        self._lines = 0
        self._columns: Sequence[str] = ()
        self._unprinted: Mapping[str, float] | None = None
        self._printed_at = -ROW_SECONDS
        self._newest: dict[str, float] = {}
        self._curve, self._curved = Sparkline(), ""

    def show(self, row: Mapping[str, float], *, is_due: bool) -> None:
        """Shows a row, with the column names of `hebbes.recording.metrics.METRICS`.

        If it is due, or the first one, a line is printed. On a live console that happens once in a second at most,
        because the view shows every row.
        """
        self._newest |= {name: value for name, value in row.items() if isfinite(value)}
        self._curved = "mean_policy_return" if "mean_policy_return" in row else "eval_return"
        self._curve.add(row.get(self._curved, nan))
        self._unprinted = row
        now = time.monotonic()
        if (is_due or not self._lines) and not (self._console.is_live and now - self._printed_at < ROW_SECONDS):
            self._printed_at = now
            self._print_row(row)

    def _print_row(self, row: Mapping[str, float]) -> None:
        row = {**row, LEFT: self._estimate_left(row)}
        columns = _choose_columns(row, self._console.width)
        if self._lines % HEADER_EVERY == 0 or columns != self._columns:
            self._print_cells({name: _describe_column(name).title for name in columns})
        self._print_cells({name: _describe_column(name).format(row[name]) for name in columns})
        self._columns, self._lines, self._unprinted = columns, self._lines + 1, None

    def _print_cells(self, cells: Mapping[str, str]) -> None:
        line = " ".join(cell.rjust(_describe_column(name).width) for name, cell in cells.items())
        self._console.print_message(line)

    def _find_share(self, row: Mapping[str, float]) -> float:
        """The share of the budget that ends the run that is used up."""
        return min(1.0, max((row[name] / most for name, most in self._budgets.items()), default=0.0))

    def _estimate_left(self, row: Mapping[str, float]) -> float:
        share = self._find_share(row)
        return row["seconds"] * (1 - share) / share if share else nan

    def _draw(self, width: int) -> list[str]:
        """The lines of the view: numbers, the curve, and a bar."""
        row = dict(self._newest)
        if not row:
            return []
        paint, has_unicode = self._console.paint, self._console.has_unicode
        columns = {name: _describe_column(name) for name in _VIEWED if name in row or name == LEFT}
        row[LEFT] = self._estimate_left(row)
        texts = [
            f"{each.label or each.title} {each.format(row[name]).ljust(each.width)}" for name, each in columns.items()
        ]
        lines, size = fill_lines(texts, width), min(MAX_BAR, width - 20)
        if curve := self._curve.draw(size, BLOCKS if has_unicode else ASCII):
            lines.append(f"{paint(curve, 36)}   {_describe_column(self._curved).label}")
        if self._budgets and size > 0:
            share = self._find_share(row)
            full, empty = ("━", "─") if has_unicode else ("#", "-")
            done = round(share * size)
            lines.append(f"{paint(full * done, 32)}{empty * (size - done)}   {100 * share:.0f} %")
        return lines

    def __enter__(self) -> Self:
        self._console.show_details(self._draw)
        return self

    def __exit__(self, *error: object) -> None:
        self._console.show_details(lambda width: ())
        if self._unprinted is not None:
            self._print_row(self._unprinted)


def _describe_column(name: str) -> Column:
    return COLUMNS.get(name) or Column(name, max(5, len(name)), format_integer)


def _choose_columns(row: Mapping[str, float], width: int) -> list[str]:
    """The columns of the row that fit into `width` characters."""
    first = next(iter(row))
    names = [first, *(name for name in COLUMNS if name in row and name != first)]
    sizes = {name: max(each.width, len(each.format(row[name]))) for name in names for each in [_describe_column(name)]}
    for name in _DROP_ORDER:
        if sum(sizes[each] + 1 for each in names) - 1 <= width:
            break
        names = [each for each in names if each != name]
    return names
