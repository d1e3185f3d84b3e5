"""The plot of a run's learning curve."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hebbes.recording.metrics import METRICS_CSV, read_metrics
from hebbes.reporting.figure import COLORS, add_legend, add_title, make_figure_with_axes, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POPULATION, _MEAN_POLICY, _, _, _BEST, _, _EVALUATION = COLORS
_LINES = {
    "return_mean": (_POPULATION, 1.5, "population, mean"),
    "mean_policy_return": (_MEAN_POLICY, 1.2, "mean policy"),
}
"""Column -> color, width and label of its line."""


def plot_learning_curve(folder: Path, png: Path, title: str, note: str = "") -> None:
    """Plots the returns over env steps in all metrics of a run, at least one row. Needs no display.

    `note` is a line below the title.
    """
    from matplotlib.ticker import EngFormatter

    metrics = read_metrics(folder / METRICS_CSV)
    figure, axes = make_figure_with_axes("env steps of training", "return")
    _draw_returns(axes, metrics)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    add_title(figure, title, note)
    add_legend(figure, axes)
    write_figure(figure, png)


def _draw_returns(axes: "Axes", metrics: dict[str, np.ndarray]) -> None:
    """Draws the columns that the trainer has."""
    steps = metrics["env_steps"]
    dot = "o" if len(steps) == 1 else ""  # a line through one point is invisible
    if metrics.keys() >= {"return_min", "return_max"}:
        low, high, label = metrics["return_min"], metrics["return_max"], "population, min to max"
        # of a single generation only the edge is visible
        axes.fill_between(steps, low, high, color=_POPULATION, alpha=0.15, lw=2, label=label)
    for name, (color, width, label) in _LINES.items():
        if name in metrics:
            axes.plot(steps, metrics[name], color=color, lw=width, marker=dot, label=label)
    scores = metrics["eval_return"]
    if np.isnan(scores).all():
        return
    best = np.nanargmax(scores)
    axes.plot(steps, scores, "o", ms=4, color=_EVALUATION, label="evaluation")
    label = f"best evaluation, {scores[best]:.1f}"
    axes.plot(steps[best], scores[best], "*", ms=14, color=_BEST, mec="white", label=label)
