"""What a page shows: sections of paragraphs, tables, charts and videos. All texts are plain text, never markup."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Table:
    """Rows of cells below a header. The first cell of a row is its name."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    """A row with fewer cells than the header ends with a remark, which takes the rest of the row."""
    is_folded: bool = False
    """Whether the reader has to open it."""

    @cached_property
    def numeric_columns(self) -> set[int]:
        """The columns whose cells all begin as numbers do, or are empty. The first one has names."""
        columns = enumerate(zip(*(row for row in self.rows if len(row) == len(self.header)), strict=True))
        return {number for number, cells in columns if number and all(cell[:1] in "-0123456789" for cell in cells)}


@dataclass(frozen=True)
class LegendEntry:
    """What a line of a chart stands for."""

    label: str
    color: str
    dash: Sequence[int]
    """Lengths of dashes and gaps; empty for a solid line."""


@dataclass(frozen=True)
class Chart:
    """A chart that Vega-Lite draws, and its numbers as a table."""

    title: str
    description: str
    """Below the chart, and for screen readers in its place."""
    spec: Mapping[str, Any]
    """Vega-Lite's specification without data."""
    data: Mapping[str, Mapping[str, Sequence[Any]]]
    """The columns of each data set that the specification names."""
    table: Table
    legend: Sequence[LegendEntry] = ()
    can_zoom: bool = False
    """Whether the specification has a selection `zoom` of the fields x and y, see `encodings.ZOOM`."""


@dataclass(frozen=True)
class Video:
    """An .mp4 file."""

    title: str
    data: bytes


@dataclass(frozen=True)
class Text:
    """A paragraph. With a title it is a program's output, whose lines stay as they are, and has to be opened."""

    text: str
    title: str = ""


Block: TypeAlias = Table | Chart | Video | Text


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading of its own."""

    title: str
    blocks: Sequence[Block] = ()
    sections: Sequence["Section"] = ()
    """Its parts, one level deep."""
