"""Charts of a page that are no curves of runs: intervals, histograms, paths and scatter plots, each with its table."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
from jaxtyping import Float

from hebbes.reporting.figure import COLORS
from hebbes.reporting.page.contents import Chart, Table
from hebbes.reporting.page.encodings import (
    HOVER,
    INK,
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
from hebbes.statistics.intervals import Estimate
from hebbes.statistics.table import format_number

_MAX_PATH_POINTS = 300
_NAME_WIDTH, _ROW_HEIGHT = 340, 48  # pixels


def make_intervals_chart(
    title: str,
    description: str,
    label: str,
    estimates: Mapping[str, Estimate],
    *,
    runs: Mapping[str, Mapping[str, float]] | None = None,
    are_probabilities: bool = False,
) -> Chart | Table:
    """Values with their intervals, one below the other, and those of runs as circles.

    The axis of probabilities goes from 0 to 1, with a line at 0.5. A value that is not finite is only in the table, and
    so are all if there is no other.
    """
    known = {name: each for name, each in estimates.items() if isfinite(each.value)}
    circles = [(name, run, value) for name in known for run, value in (runs or {}).get(name, {}).items()]
    data: dict[str, dict[str, list[Any]]] = {
        "estimates": {
            "name": list(known),
            "value": shorten_numbers([each.value for each in known.values()]),
            "low": shorten_numbers([each.low for each in known.values()]),
            "high": shorten_numbers([each.high for each in known.values()]),
        },
        "runs": {
            "name": [name for name, _, _ in circles],
            "run": [run for _, run, _ in circles],
            "value": shorten_numbers([value for _, _, value in circles]),
        },
    }
    has_intervals = any(isfinite(each.low) for each in known.values())
    layers = _list_interval_layers(
        label, has_intervals=has_intervals, has_circles=bool(circles), are_probabilities=are_probabilities
    )
    rows = [(name, *map(format_number, (each.value, each.low, each.high))) for name, each in estimates.items()]
    table = Table(title, ("", label, "95 % interval from", "to"), rows)
    if not known:
        return table
    return Chart(title, description, make_spec("estimates", layers, height=_ROW_HEIGHT * len(known)), data, table)


def _list_interval_layers(
    label: str, *, has_intervals: bool, has_circles: bool, are_probabilities: bool
) -> list[dict[str, Any]]:
    fixed = {"scale": {"domain": [0, 1]}, "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2~f"}}
    x = encode_number("value", label, **fixed if are_probabilities else {})
    y: dict[str, Any] = {"field": "name", "type": "nominal", "sort": None, "axis": None}
    name, number = {"field": "name", "title": "of"}, list_tooltips({"value": label})
    interval = {"tooltip": [name, *number, *list_tooltips({"low": "95 % interval from", "high": "to"})]}
    bar: dict[str, Any] = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, **interval}
    dot = {"type": "point", "filled": True, "size": 110, "color": INK, "opacity": 1}  # colors are those of methods
    # names beside the rows would leave no room on a phone
    above: dict[str, Any] = {
        "type": "text",
        "align": "left",
        "dy": -14,
        "color": INK,
        "limit": _NAME_WIDTH,
        **MARK,
        "clip": False,
    }
    circle = {"type": "point", "color": INK, "opacity": 0.6, "size": 40, "yOffset": 10}
    run = {"tooltip": [name, {"field": "run", "title": "run"}, *number]}
    line = {"type": "rule", "strokeDash": [4, 4], "color": INK, **MARK}
    layers: list[tuple[dict[str, Any], bool]] = [
        ({"mark": {"type": "rule", "strokeWidth": 3, "color": INK}, "encoding": bar}, has_intervals),
        ({"mark": dot, "encoding": {"y": y, "x": x, **interval}}, True),
        ({"mark": above, "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "name"}}}, True),
        ({"data": {"name": "runs"}, "mark": circle, "encoding": {"y": y, "x": x, **run}}, has_circles),
        ({"mark": line, "encoding": {"x": {"datum": 0.5}}}, are_probabilities),
    ]
    return [layer for layer, is_drawn in layers if is_drawn]  # Vega warns of layers without data


def make_histogram_chart(
    title: str, description: str, edges: Float[np.ndarray, " edges"], values: Float[np.ndarray, " _values"]
) -> Chart:
    """How many values lie between two edges."""
    counts, _ = np.histogram(values, edges)
    starts, ends = edges[:-1].tolist(), edges[1:].tolist()
    bars = {"x": shorten_numbers(starts), "end": shorten_numbers(ends), "y": counts.tolist()}
    encoding = {
        "x": encode_number("x", title),
        "x2": {"field": "end"},
        "y": {"field": "y", "type": "quantitative", "title": "number", "axis": {"tickCount": 4}},
        "y2": {"datum": 0},
        "tooltip": list_tooltips({"x": "from", "end": "to", "y": "number"}),
    }
    layers = [{"mark": {"type": "rect", "color": COLORS[0], **MARK}, "encoding": encoding}]
    rows = [
        (format_number(start), format_number(end), str(count))
        for start, end, count in zip(starts, ends, counts.tolist(), strict=True)
        if count
    ]
    table = Table(title, ("from", "to", "number"), rows)
    return Chart(title, description, make_spec("bars", layers, height=140), {"bars": bars}, table)


def make_paths_chart(
    title: str, description: str, axis_labels: tuple[str, str], paths: Mapping[str, Float[np.ndarray, "_points 2"]]
) -> Chart:
    """Paths in the plane, with a circle where one starts and a square where it ends."""
    places = {label: choose_places(len(points), _MAX_PATH_POINTS) for label, points in paths.items()}
    points = _collect_points({label: each[places[label]] for label, each in paths.items()})
    points["step"] = [step for each in places.values() for step in each.tolist()]
    ends = _collect_points({label: each[[0, -1]] for label, each in paths.items()})
    ends["end"] = ["start", "end"] * len(paths)
    styles = style_lines(list(paths))
    color, dash = encode_styles(styles)
    position = {"x": encode_number("x", axis_labels[0]), "y": encode_number("y", axis_labels[1]), "color": color}
    numbers = list_tooltips({"step": "env step", "x": axis_labels[0], "y": axis_labels[1]})
    hovered = {"opacity": ONLY_HOVERED, "tooltip": [{"field": "line", "title": "of"}, *numbers]}
    shape = {"field": "end", "legend": None, "scale": {"domain": ["start", "end"], "range": ["circle", "square"]}}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "line", "strokeWidth": 1, **MARK},
            "encoding": {**position, "strokeDash": dash, "order": {"field": "step"}},
        },
        {
            "params": [HOVER, ZOOM],
            "mark": {"type": "point", "filled": True, "size": 40, **MARK},
            "encoding": {**position, **hovered},
        },
        {
            "data": {"name": "ends"},
            "mark": {"type": "point", "filled": True, "size": 70, "stroke": INK, "opacity": 1, **MARK},
            "encoding": {**position, "shape": shape},
        },
    ]
    rows = [(label, *map(format_number, (*each[0], *each[-1]))) for label, each in paths.items()]
    table = Table(title, ("", "start, x", "start, y", "end, x", "end, y"), rows)
    data = {"points": points, "ends": ends}
    return Chart(title, description, make_spec("points", layers), data, table, styles, can_zoom=True)


def _collect_points(paths: Mapping[str, Float[np.ndarray, "_points 2"]]) -> dict[str, list[Any]]:
    return {
        "line": [label for label, points in paths.items() for _ in points],
        "x": shorten_numbers([x for points in paths.values() for x in points[:, 0].tolist()]),
        "y": shorten_numbers([y for points in paths.values() for y in points[:, 1].tolist()]),
    }


def make_scatter_chart(
    title: str,
    description: str,
    axis_labels: tuple[str, str],
    points: Mapping[str, tuple[float | str, float]],
    *,
    is_log: bool = False,
) -> Chart:
    """Points by name. The first values are all numbers, or all texts, which are set side by side."""
    xs, ys = [x for x, _ in points.values()], [y for _, y in points.values()]
    numbers = [x for x in xs if not isinstance(x, str)]
    is_number = len(numbers) == len(xs)
    columns = {"name": list(points), "x": shorten_numbers(numbers) if is_number else xs, "y": shorten_numbers(ys)}
    x: dict[str, Any] = {"field": "x", "type": "nominal", "title": axis_labels[0], "axis": {"labelAngle": 0}}
    first = [{"field": "x", "title": axis_labels[0]}]
    if is_number:
        x = encode_number("x", axis_labels[0], scale={"padding": 8, **({"type": "log"} if is_log else {"zero": False})})
        first = list_tooltips({"x": axis_labels[0]})
    tooltip = [{"field": "name", "title": "of"}, *first, *list_tooltips({"y": axis_labels[1]})]
    layer: dict[str, Any] = {
        "mark": {"type": "point", "filled": True, "size": 60, "color": COLORS[0], "opacity": 0.8, "clip": True},
        "encoding": {
            "x": x,
            "y": encode_number("y", axis_labels[1], scale={"zero": False, "padding": 8}),
            "tooltip": tooltip,
        },
    }
    if is_number:
        layer["params"] = [ZOOM]
    rows = [(name, x if isinstance(x, str) else format_number(x), format_number(y)) for name, (x, y) in points.items()]
    table = Table(title, ("", *axis_labels), rows)
    return Chart(title, description, make_spec("points", [layer]), {"points": columns}, table, can_zoom=is_number)
