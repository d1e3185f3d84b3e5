"""Figures of methods: their learning curves, and performance profiles of their scores."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.errors import prefix_errors
from hebbes.reporting.figure import POINT_MARKERS, add_legend, add_title, get_line_style, make_figure_with_axes
from hebbes.statistics.curves import Curve, RunCurve, average_runs, compute_profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STATISTICS = {"iqm": "interquartile mean", "mean": "mean"}
_THRESHOLDS = 200


def make_curves_figure(
    title: str, note: str, axis_labels: tuple[str, str], methods: Mapping[str, Sequence[RunCurve]], statistic: str
) -> "Figure":
    """The curves of all runs, thin, and for each method of several runs their average with its interval.

    ValueError if the runs of a method have no range in common.
    """
    from matplotlib.ticker import EngFormatter

    figure, axes = make_figure_with_axes(*axis_labels)
    for number, (label, runs) in enumerate(methods.items()):
        style = get_line_style(number)
        for run in runs if len(runs) > 1 else ():
            axes.plot(run.x, run.y, **style, lw=0.6, alpha=0.5, marker="." * (len(run.x) == 1))
        with prefix_errors(f"{label}: "):
            average = average_runs(runs, statistic)
        _draw_curve(axes, average, style, format_method_label(label, len(runs)))
    if axes.get_xlim()[1] >= 1000:  # it would write 0.2 as 200m
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    lines = f"thick: {STATISTICS[statistic]} of the runs with its 95 % interval, thin: each run"
    several = any(len(runs) > 1 for runs in methods.values())
    add_title(figure, title, "; ".join(filter(None, (lines if several else "", note))))
    add_legend(figure, axes)
    return figure


def make_profiles_figure(
    title: str, note: str, score: str, methods: Mapping[str, Float64[np.ndarray, " _runs"]]
) -> "Figure":
    """The share of each method's runs whose score is above a threshold, over all thresholds, with intervals."""
    figure, axes = make_figure_with_axes(f"threshold of {score}", "share of runs above it")
    thresholds = choose_thresholds(methods)
    for number, (label, scores) in enumerate(methods.items()):
        profile = compute_profile(scores, thresholds)
        _draw_curve(axes, profile, get_line_style(number), format_method_label(label, len(scores)))
    axes.set_ylim(-0.03, 1.03)
    add_title(figure, title, "; ".join(filter(None, ("performance profiles with 95 % intervals", note))))
    add_legend(figure, axes)
    return figure


def choose_thresholds(methods: Mapping[str, Float64[np.ndarray, " _runs"]]) -> Float64[np.ndarray, " thresholds"]:
    """The thresholds of performance profiles of these scores: from below all of them to above all of them."""
    everything = np.concatenate(list(methods.values()))
    margin = 0.05 * (np.ptp(everything) or 1.0)
    return np.linspace(everything.min() - margin, everything.max() + margin, _THRESHOLDS)


def format_method_label(label: str, count: int) -> str:
    """The label of a method, and how many runs of it there are."""
    return f"{label} ({count} run{'s' * (count > 1)})"


def _draw_curve(axes: "Axes", curve: Curve, style: Mapping[str, Any], label: str) -> None:
    if len(curve.x) == 1:  # a line or an area of one point is invisible
        spread = [curve.value - curve.low, curve.high - curve.value]
        color, marker = style["color"], POINT_MARKERS[style["linestyle"]]
        axes.errorbar(curve.x, curve.value, spread, color=color, fmt=marker, capsize=4, label=label)
        return
    axes.plot(curve.x, curve.value, **style, lw=1.8, label=label)
    axes.fill_between(curve.x, curve.low, curve.high, color=style["color"], alpha=0.18, lw=0)
