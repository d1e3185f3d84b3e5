"""Plain text tables, the same on a terminal, in a pipe and in a log."""

from collections.abc import Callable, Sequence
from math import isfinite

SEPARATOR = "  "


def format_number(value: float) -> str:
    """Three digits or more, from 0.1 to 1 two: 0.0123, 0.12, 1.23, 12.3, 1235, 1.23e+06; "-" if it is not finite."""
    if not isfinite(value):
        return "-"
    size = abs(value)
    if size >= 1e6:
        return f"{value:.2e}"
    if 0 < size < 0.1:
        return f"{value:.3g}"
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2}f}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[str] = ()) -> str:
    """The rows below the header: the first column and those called `texts` are aligned left, the others right.

    A row with another number of cells than the header is a label and a remark, which is not aligned with the columns.
    """
    columns = zip(*[header, *(row for row in rows if len(row) == len(header))], strict=True)
    widths = [max(map(len, column)) for column in columns]
    widths[0] = max(len(row[0]) for row in [header, *rows])
    aligns = [str.ljust if place == 0 or name in texts else str.rjust for place, name in enumerate(header)]
    return "\n".join(_format_line(row, widths, aligns) for row in [header, *rows])


def _format_line(row: Sequence[str], widths: Sequence[int], aligns: Sequence[Callable[[str, int], str]]) -> str:
    if len(row) != len(widths):
        return SEPARATOR.join([row[0].ljust(widths[0]), *row[1:]])
    cells = [align(cell, width) for cell, width, align in zip(row, widths, aligns, strict=True)]
    return SEPARATOR.join(cells).rstrip()
