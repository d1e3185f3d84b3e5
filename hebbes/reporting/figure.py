"""Figures as PNGs, without a display. Matplotlib is imported when the first is drawn: that takes most of a second."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from hebbes.files.atomic_file import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UPRIGHT = "normal", 400, "normal"
"""Style, weight and stretch."""
_FONT, _BOXES = "DejaVu Sans", "Last Resort High-Efficiency"
"""Matplotlib brings both along; the second draws a box for any character."""


def empty_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: "Axes") -> None:
    """A light grid, no box, and the legend where it covers least."""
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best", fontsize="x-small", framealpha=0.8)


def write_figure(figure: "Figure", png: Path) -> None:
    """Writes it whole or not at all, in fonts that have what a user's names are written in."""
    _choose_fonts(figure)
    picture = BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(png, picture.getvalue())


def _choose_fonts(figure: "Figure") -> None:
    """Adds fonts to the usual one where it lacks characters: installed ones that have them, at last one of boxes."""
    from matplotlib.font_manager import findfont
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    characters = {each for text in texts for each in text.get_text()} - {"\n"}
    lacking = _without_glyph(findfont(_FONT), characters)
    if lacking:
        families = [_FONT, *_families_with(lacking), _BOXES]
        for text in texts:
            text.set_fontfamily(families)


def _families_with(characters: set[str]) -> Iterator[str]:
    """Installed families of upright letters that together have as many of the characters as any do."""
    from matplotlib.font_manager import fontManager

    upright = [font for font in fontManager.ttflist if (font.style, font.weight, font.stretch) == _UPRIGHT]
    for font in sorted(upright, key=lambda font: font.name):
        lacking = _without_glyph(font.fname, characters) if font.name != _BOXES else characters
        if lacking < characters:
            yield font.name
        characters = lacking


def _without_glyph(path: str, characters: set[str]) -> set[str]:
    """Those that a font cannot draw; all where it cannot be opened, or is one of colored pictures."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
    except (OSError, RuntimeError, ValueError):
        return characters
    return {each for each in characters if not (font.scalable and font.get_char_index(ord(each)))}
