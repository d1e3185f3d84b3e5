"""Writes a page as one HTML file, which needs no network.

Vega-Lite (Satyanarayan et al. 2017, doi:10.1109/TVCG.2016.2599030) draws the charts as SVG. It was chosen for its size,
0.9 MB (Bokeh's scripts have 1.3 MB, Plotly's 4.8 MB), because it interprets its expressions where a content security
policy forbids to compile them, and because its SVG has a description for screen readers, which a canvas has not. The
package `vl-convert-python` has its scripts.

The policy of a page allows only the scripts and the style that are written here, by their hashes. Jinja escapes every
text. What the charts show is JSON without "<", so that it cannot end its element.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

from hebbes.files.atomic_file import check_place, write_atomically
from hebbes.reporting.page.contents import Chart, Section

ACTIONS = (
    *(("in", "Zoom in"), ("out", "Zoom out"), ("left", "Left"), ("right", "Right")),
    *(("up", "Up"), ("down", "Down"), ("all", "Show all")),
)
"""What the buttons of a chart do, in the words of page.js, and their labels."""
_PACKAGES = {"jinja2": "Jinja2", "vl_convert": "vl-convert-python"}


def check_page_path(name: str, path: Path) -> None:
    """ValueError that begins with the option's name if no page can be written. Called before any work is done."""
    check_place(name, path, (".html",))
    for module, package in _PACKAGES.items():
        if find_spec(module) is None:
            raise ValueError(f"report needs the package {package}; in a clone of hebbes, pip install '.[report]'")


def write_page(path: Path, title: str, subtitle: str, sections: Sequence[Section]) -> None:
    """Writes the page atomically; OSError if the disk refuses."""
    write_atomically(path, make_page(title, subtitle, sections).encode())


def make_page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The text of the page."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["base64"] = lambda data: b64encode(data).decode()
    charts = {f"chart-{number}": chart for number, chart in enumerate(_list_charts(sections))}
    places = {id(chart): name for name, chart in charts.items()}
    environment.filters["place"] = lambda chart: places[id(chart)]
    style, scripts = _read("page.css"), (_make_vega_script(), _read("page.js"))
    return environment.from_string(_read("page.html")).render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        actions=ACTIONS,
        style=style,
        scripts=scripts,
        data=_format_data(charts),
        policy=_make_policy(style, scripts),
    )


def _read(name: str) -> str:
    return (files("hebbes.reporting.page") / name).read_text()


@cache
def _make_vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; takes five seconds."""
    from vl_convert import javascript_bundle

    script: str = javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", r"<\/script")


def _list_charts(sections: Sequence[Section]) -> Iterator[Chart]:
    for section in sections:
        yield from (block for block in section.blocks if isinstance(block, Chart))
        yield from _list_charts(section.sections)


def _format_data(charts: Mapping[str, Chart]) -> str:
    """JSON with the specification and the data of every chart, by the id of its place."""
    placed = {
        name: {
            "spec": {**chart.spec, "description": f"{chart.title}. {chart.description}"},
            "data": {
                key: {column: _shorten(values) for column, values in columns.items()}
                for key, columns in chart.data.items()
            },
        }
        for name, chart in charts.items()
    }
    return json.dumps(placed, separators=(",", ":"), allow_nan=False).replace("<", r"\u003c")


def _shorten(values: Sequence[Any]) -> list[Any] | dict[str, list[Any]]:
    """A column, or how often each value of it comes in turn where that is shorter."""
    runs = [(value, len(list(equal))) for value, equal in groupby(values)]
    return {"repeated": runs} if 2 * len(runs) < len(values) else list(values)


def _make_policy(style: str, scripts: Sequence[str]) -> str:
    """The content security policy of a page with one style and these scripts."""
    allowed = {"script-src": map(_hash, scripts), "style-src": [_hash(style)]}
    rules = {"default-src": ["'none'"], **allowed, "img-src": ["data:"], "media-src": ["data:"]}
    rules |= {"base-uri": ["'none'"], "form-action": ["'none'"]}
    return "; ".join(" ".join((name, *sources)) for name, sources in rules.items())


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
