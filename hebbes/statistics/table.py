"""Plain text tables, the same on a terminal, in a pipe and in a log."""

from collections.abc import Sequence
from math import isfinite

SEPARATOR = "  "


def format_number(value: float) -> str:
    """At least three digits: 1.23, 12.3, 123, 1235, 1.23e+06; "-" for numbers that are not finite."""
    if not isfinite(value):
        return "-"
    size = abs(value)
    if size >= 1e6:
        return f"{value:.2e}"
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2}f}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows below the header: the first column is aligned left, the others right.

    A row with another number of cells than the header is a label and a remark, which is not aligned with the columns.
    """
    columns = zip(*[header, *(row for row in rows if len(row) == len(header))], strict=True)
    widths = [max(map(len, column)) for column in columns]
    widths[0] = max(len(row[0]) for row in [header, *rows])
    return "\n".join(_format_line(row, widths) for row in [header, *rows])


def _format_line(row: Sequence[str], widths: Sequence[int]) -> str:
    label = row[0].ljust(widths[0])
    if len(row) != len(widths):
        return SEPARATOR.join([label, *row[1:]])
    return SEPARATOR.join([label, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
