"""What the charts of a page have in common: colors, zoom, tooltips, numbers. Colors are those of all figures.

The columns x and y of a chart with zoom have these names because the selection `ZOOM` and page.js do.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from jaxtyping import Int

from hebbes.reporting.figure import COLORS, get_line_style
from hebbes.reporting.page.contents import LegendEntry

INK = "currentColor"
"""The color of text, on light and dark pages. It stands for black among the colors of lines."""
MARK: Mapping[str, Any] = {"clip": True, "aria": False}
"""Of marks too many for a screen reader, which gets the chart's description and table instead."""
ZOOM = {
    "name": "zoom",
    # without the key, the wheel scrolls the page
    "select": {"type": "interval", "encodings": ["x", "y"], "zoom": "wheel![event.ctrlKey]"},
    "bind": "scales",
}
HOVER = {
    "name": "hover",
    "select": {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout"},
}
ONLY_HOVERED = {"condition": {"param": "hover", "empty": False, "value": 1}, "value": 0}
"""The opacity of points that are hidden except for the one that is nearest to the pointer."""
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # a name, from which nothing is loaded
_HEIGHT = 260
_DASHES = {"-": (), "--": (6, 3), ":": (2, 3), "-.": (6, 3, 2, 3)}


def style_lines(labels: Sequence[str]) -> list[LegendEntry]:
    """The legend of lines, in the colors and dashes of all figures."""
    styles = [get_line_style(number) for number in range(len(labels))]
    return [
        LegendEntry(label, INK if style["color"] == COLORS[-1] else style["color"], _DASHES[style["linestyle"]])
        for label, style in zip(labels, styles, strict=True)
    ]


def encode_styles(styles: Sequence[LegendEntry]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Color and dash by the column `line`."""
    labels = [each.label for each in styles]

    def encode(values: Sequence[Any]) -> dict[str, Any]:
        return {"field": "line", "type": "nominal", "legend": None, "scale": {"domain": labels, "range": values}}

    return encode([each.color for each in styles]), encode([list(each.dash) for each in styles])


def encode_number(column: str, title: str, **options: Any) -> dict[str, Any]:
    """The encoding of a column of numbers, with an axis that need not contain 0."""
    return {
        "field": column,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False},
        "axis": {"tickCount": 5},
        **options,
    }


def list_tooltips(titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Tooltips of columns of numbers."""
    return [
        {"field": column, "type": "quantitative", "title": title, "format": ",.5~g"} for column, title in titles.items()
    ]


def make_spec(data: str, layers: Sequence[Mapping[str, Any]], **options: Any) -> dict[str, Any]:
    """A chart as wide as its place, of the data set with this name."""
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "height": _HEIGHT,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"name": data},
        "layer": list(layers),
        **options,
    }


def shorten_numbers(values: Sequence[float]) -> list[float | None]:
    """The numbers with six digits, for a small file; None for what JSON cannot hold."""
    return [float(f"{value:.6g}") if isfinite(value) else None for value in values]


def choose_places(count: int, most: int) -> Int[np.ndarray, " places"]:
    """At most that many places of equal distance, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))
