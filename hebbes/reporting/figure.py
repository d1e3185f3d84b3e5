"""Figures as PNGs or SVGs, without a display. Matplotlib is imported with the first one, which takes most of a second.

All figures have one palette, which color-blind readers can tell apart: that of Okabe & Ito (2008), "Color universal
design". They have a white ground of their own, so that they look the same on a dark page.
"""

import textwrap
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hebbes.files.atomic_file import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Blue, vermilion, green, purple, orange, sky blue, black: the palette without yellow, which is too light on white."""

SUFFIXES = (".png", ".svg")
POINT_MARKERS = {"-": "o", "--": "s", ":": "^", "-.": "D"}
"""When each color has been used once, lines get the next of these styles, and curves of one point its marker."""
_LINE_STYLES = tuple(POINT_MARKERS)
WIDTH, HEIGHT = 6.4, 4.4
"""Inches, of a figure with one pair of axes."""
_LEGEND_CHARACTERS, _NOTE_CHARACTERS = 66, 84
"""In a line of this width."""

_LEGEND_LINE, _USUAL_LINES = 0.17, 6
"""Inches of a line in a legend, and lines for which a figure has room."""

_UPRIGHT = "normal", 400, "normal"
"""Style, weight and stretch of an upright font."""
_FONT, _BOXES = "DejaVu Sans", "Last Resort High-Efficiency"
"""Matplotlib contains both. The second one draws a box for any character."""


def make_figure(width: float, height: float) -> "Figure":
    """An empty figure that needs no display. Width and height are in inches, as it is to be printed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def make_figure_with_axes(x_label: str, y_label: str) -> tuple["Figure", "Axes"]:
    """A figure of the usual size, with axes to draw on."""
    figure = make_figure(WIDTH, HEIGHT)
    axes = figure.add_subplot()
    style_axes(axes)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    return figure, axes


def get_line_style(number: int) -> dict[str, Any]:
    """Color and line style of the line of this number, from 0."""
    turn, position = divmod(number, len(COLORS))
    return {"color": COLORS[position], "linestyle": _LINE_STYLES[turn % len(_LINE_STYLES)]}


def style_axes(axes: "Axes") -> None:
    """Gives axes the palette, a light grid and no box, before anything is drawn on them."""
    styles = [get_line_style(number) for number in range(len(COLORS) * len(_LINE_STYLES))]
    axes.set_prop_cycle(**{name: [style[name] for style in styles] for name in styles[0]})
    axes.set_axisbelow(True)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def add_title(figure: "Figure", title: str, note: str = "") -> None:
    """The title of a figure, and smaller lines below it. Nothing in them is markup."""
    figure.suptitle(textwrap.fill(title, _LEGEND_CHARACTERS), fontsize="medium", parse_math=False)
    if note:
        top = figure.axes[0]
        top.set_title(textwrap.fill(note, _NOTE_CHARACTERS), fontsize="small", color="0.3", parse_math=False)


def add_legend(figure: "Figure | SubFigure", axes: "Axes") -> None:
    """A legend of what is drawn on the axes, below the data. The figure grows, where it has more lines than usual."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    columns = max(1, min(len(labels), _LEGEND_CHARACTERS // (max(map(len, labels)) + 4)))
    wrapped = [textwrap.fill(label, _LEGEND_CHARACTERS) for label in labels]
    lines = sum(1 + text.count("\n") for text in wrapped) // columns
    whole = figure.figure  # of a part of a figure, the whole
    whole.set_figheight(whole.get_figheight() + _LEGEND_LINE * max(0, lines - _USUAL_LINES))
    legend = figure.legend(handles, wrapped, loc="outside lower center", ncols=columns, fontsize="small", frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    for line in legend.get_lines():
        line.set_linewidth(max(2.0, line.get_linewidth()))  # the color of a thin line cannot be told


def write_figure(figure: "Figure", path: Path) -> None:
    """Writes the figure atomically, as its suffix says, in fonts that have all characters of the user's names."""
    _choose_fonts(figure)
    picture, kind = BytesIO(), path.suffix.removeprefix(".")
    figure.savefig(picture, format=kind, metadata={"Date": None} if kind == "svg" else None)
    write_atomically(path, picture.getvalue())


def _choose_fonts(figure: "Figure") -> None:
    """If the usual font lacks characters, adds installed fonts that have them, and last a font of boxes."""
    from matplotlib.font_manager import findfont
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    characters = {each for text in texts for each in text.get_text()} - {"\n"}
    lacking = _find_missing_characters(findfont(_FONT), characters)
    if lacking:
        families = [_FONT, *_find_families_with(lacking), _BOXES]
        for text in texts:
            text.set_fontfamily(families)


def _find_families_with(characters: set[str]) -> Iterator[str]:
    """Installed upright font families that together have all of the characters that any installed font has."""
    from matplotlib.font_manager import fontManager

    upright = [font for font in fontManager.ttflist if (font.style, font.weight, font.stretch) == _UPRIGHT]
    for font in sorted(upright, key=lambda font: font.name):
        lacking = _find_missing_characters(font.fname, characters) if font.name != _BOXES else characters
        if lacking < characters:
            yield font.name
        characters = lacking


def _find_missing_characters(path: str, characters: set[str]) -> set[str]:
    """The characters that a font cannot draw. All of them if it cannot be opened or has only colored pictures."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
    except (OSError, RuntimeError, ValueError):
        return characters
    return {each for each in characters if not (font.scalable and font.get_char_index(ord(each)))}
