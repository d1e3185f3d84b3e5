"""Figures as PNGs, without a display. Matplotlib is imported when the first is drawn: that takes most of a second."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from reporting.atomic_file import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    """Writes it whole or not at all."""
    picture = BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(png, picture.getvalue())
