"""Figures as PNGs, without a display. Matplotlib is imported with the first figure, which takes most of a second."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from hebbes.files.atomic_file import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UPRIGHT = "normal", 400, "normal"
"""Style, weight and stretch of an upright font."""
_FONT, _BOXES = "DejaVu Sans", "Last Resort High-Efficiency"
"""Matplotlib contains both. The second one draws a box for any character."""


def make_figure(width: float, height: float) -> "Figure":
    """An empty figure that needs no display. Width and height are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: "Axes") -> None:
    """Gives the axes a light grid, no box, and a legend, if they have lines with names, where it covers least."""
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize="x-small", framealpha=0.8)


def write_figure(figure: "Figure", png: Path) -> None:
    """Writes the figure atomically, in fonts that have all characters of the user's names."""
    _choose_fonts(figure)
    picture = BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(png, picture.getvalue())


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
