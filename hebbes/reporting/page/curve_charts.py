"""Curves of runs and of methods on a page, and the tables below them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64

from hebbes.reporting.page.contents import Chart, LegendEntry, Table
from hebbes.reporting.page.encodings import (
    HOVER,
    MARK,
    ONLY_HOVERED,
    ZOOM,
    choose_places,
    encode_number,
    encode_styles,
    list_tooltips,
    make_spec,
    shorten_numbers,
    style_lines,
)
from hebbes.statistics.curves import Curve, RunCurve
from hebbes.statistics.table import format_number

_ROWS = 20
"""Of a line in the table below its chart."""
_FEW_POINTS = 60
"""Up to so many points are drawn as dots too."""


@dataclass(frozen=True)
class Line:
    """What has one color: the runs of a method, and their average."""

    label: str
    runs: Mapping[str, RunCurve] = field(default_factory=dict)
    """By name."""
    average: Curve | None = None


def make_curves_chart(
    title: str,
    description: str,
    axis_labels: tuple[str, str],
    lines: Sequence[Line],
    *,
    max_points: int,
    is_log: bool = False,
) -> Chart:
    """Curves of runs, each with at most `max_points`, interrupted at gaps, and thick ones of averages with intervals.

    With `is_log` the axis of y is logarithmic. The table has the averages, or the runs if there is no average.
    """
    columns = _collect_points(lines, max_points)
    styles = style_lines([line.label for line in lines])
    of_runs, interval, of_averages, hovered = _list_layers(axis_labels, styles, is_log=is_log)
    has_averages = any(line.average for line in lines)
    has_intervals = any(low is not None for low in columns["low"])
    if has_averages:
        of_runs["mark"] |= {"strokeWidth": 1, "opacity": 0.5}
    if len(columns["x"]) > _FEW_POINTS:
        hovered["encoding"]["opacity"] = ONLY_HOVERED
    # Vega warns of layers without data
    layers = [(of_runs, any(line.runs for line in lines)), (interval, has_intervals), (of_averages, has_averages)]
    spec = make_spec("points", [*[layer for layer, has_data in layers if has_data], hovered])
    table = (_make_averages_table if has_averages else _make_runs_table)(title, axis_labels, lines)
    return Chart(title, description, spec, {"points": columns}, table, styles, can_zoom=True)


def _list_layers(
    axis_labels: tuple[str, str], styles: Sequence[LegendEntry], *, is_log: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The lines of runs, the intervals of averages, their lines, and the points under the pointer."""
    color, dash = encode_styles(styles)
    x = encode_number("x", axis_labels[0], axis={"format": "~s", "tickCount": 5})
    y = encode_number("y", axis_labels[1], scale={"type": "log"} if is_log else {"zero": False})
    position, style = {"x": x, "y": y, "color": color}, {"strokeDash": dash}
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": color}
    tooltip = [
        {"field": "line", "title": "method"},
        {"field": "run", "title": "run"},
        *list_tooltips({"x": axis_labels[0], "y": axis_labels[1], "low": "95 % interval from", "high": "to"}),
    ]
    of_runs = {
        "transform": [{"filter": "datum.run"}],
        "mark": {"type": "line", "strokeWidth": 1.5, "strokeCap": "round", **MARK},  # a point between gaps is a dot
        "encoding": {**position, **style, "detail": {"field": "run"}},
    }
    interval, of_averages = [
        {"transform": [{"filter": "!datum.run"}], "mark": mark, "encoding": encoding}
        for mark, encoding in (
            ({"type": "area", "opacity": 0.18, **MARK}, band),
            ({"type": "line", "strokeWidth": 2.5, **MARK}, {**position, **style}),
        )
    ]
    hovered = {
        "params": [HOVER, ZOOM],
        "mark": {"type": "point", "filled": True, "size": 40, **MARK},
        "encoding": {**position, "opacity": {"value": 1}, "tooltip": tooltip},
    }
    return of_runs, interval, of_averages, hovered


def _collect_points(lines: Sequence[Line], max_points: int) -> dict[str, list[Any]]:
    """The points of all lines as columns. Those of an average have no run, those of a run no interval."""
    columns: dict[str, list[Any]] = {name: [] for name in ("line", "run", "x", "y", "low", "high")}

    def add(label: str, run: str, *arrays: Float64[np.ndarray, " points"]) -> None:
        columns["line"] += [label] * len(arrays[0])
        columns["run"] += [run] * len(arrays[0])
        for name, array in zip(("x", "y", "low", "high"), arrays, strict=True):
            columns[name] += shorten_numbers(array.tolist())

    for line in lines:
        for run, curve in line.runs.items():
            x, y = _choose_points(curve, max_points)
            add(line.label, run, x, y, *[np.full(len(x), np.nan)] * 2)
        if line.average is not None:
            add(line.label, "", line.average.x, line.average.value, line.average.low, line.average.high)
    return columns


def _choose_points(
    curve: RunCurve, max_points: int
) -> tuple[Float64[np.ndarray, " points"], Float64[np.ndarray, " points"]]:
    """At most that many points of a curve, and one more, whose y is NaN, between two that have a gap between them."""
    places = choose_places(len(curve.x), max_points)
    x, y = curve.x[places], curve.y[places]
    behind = np.unique(np.searchsorted(x, curve.gaps))
    behind = behind[(behind > 0) & (behind < len(x))]
    return np.insert(x, behind, x[behind]), np.insert(y, behind, np.nan)


def _make_averages_table(caption: str, axis_labels: tuple[str, str], lines: Sequence[Line]) -> Table:
    """The averages of the lines that have one, at some of their points."""
    rows = []
    for line in lines:
        if line.average is not None:
            numbers = np.stack([line.average.x, line.average.value, line.average.low, line.average.high], axis=1)
            places = choose_places(len(numbers), _ROWS)
            rows += [(line.label, *map(format_number, numbers[place])) for place in places]
    return Table(caption, ("", *axis_labels, "95 % interval from", "to"), rows)


def _make_runs_table(caption: str, axis_labels: tuple[str, str], lines: Sequence[Line]) -> Table:
    """Where the curve of each run begins and ends, and its extremes."""
    x, y = axis_labels
    header = ("run", "method", f"last {x}", f"first {y}", f"last {y}", "lowest", "highest")
    rows = [
        (run, line.label, *map(format_number, (curve.x[-1], curve.y[0], curve.y[-1], curve.y.min(), curve.y.max())))
        for line in lines
        for run, curve in line.runs.items()
    ]
    return Table(caption, header, rows)
