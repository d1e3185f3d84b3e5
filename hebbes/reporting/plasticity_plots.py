"""Plots of plasticity: how weights change within an episode, how fast, the coefficients, and returns by morphology."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32

from hebbes.evaluation.weight_recording import WeightRecording
from hebbes.reporting.figure import COLORS, WIDTH, add_legend, add_title, make_figure, make_figure_with_axes, style_axes
from hebbes.statistics.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUM_BINS = 60


def project_on_principal_components(
    trajectories: Sequence[Float[np.ndarray, "_points synapses"]],
) -> tuple[list[Float[np.ndarray, "_points 2"]], Float[np.ndarray, " 2"]]:
    """The trajectories, projected on their first two principal components, and each component's share of variance."""
    points = np.concatenate(trajectories).astype(np.float64)
    _, singular, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    plane, variances = np.zeros((2, points.shape[1])), np.zeros(2)
    plane[: len(axes[:2])], variances[: len(axes[:2])] = axes[:2], singular[:2] ** 2
    projected = (points - points.mean(axis=0)) @ plane.T
    ends = np.cumsum([len(each) for each in trajectories])[:-1]
    return np.split(projected, ends), variances / (np.sum(singular**2) or 1.0)


def make_weights_figure(title: str, recordings: Sequence[WeightRecording], layers: Sequence[int]) -> "Figure":
    """The weight trajectories of `layers` (from 1) in all episodes, and how fast weights change in the first."""
    figure = make_figure(max(WIDTH, 2.9 * len(layers)), 6.4)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[6, 5])[:, 0]
    columns = above.subplots(1, len(layers), squeeze=False)[0]
    for axes, layer in zip(columns, layers, strict=True):
        _draw_trajectories(axes, [recording.trajectories[layer - 1] for recording in recordings])
        axes.set_title(f"weights of layer {layer}", fontsize="medium")
    add_legend(above, columns[0])
    changing = below.subplots()
    _draw_changes(changing, recordings[0], layers)
    add_legend(below, changing)
    add_title(figure, title)
    return figure


def make_coefficients_figure(title: str, coefficients: Mapping[str, Float[np.ndarray, " sets"]]) -> "Figure":
    """How the sets of coefficients are distributed: a histogram for each coefficient, all on the same axes."""
    num_columns = min(3, len(coefficients))
    num_rows = -(-len(coefficients) // num_columns)
    figure = make_figure(WIDTH, 1.2 + 1.7 * num_rows)
    grid = figure.subplots(num_rows, num_columns, squeeze=False, sharex=True, sharey=True)
    edges = np.histogram_bin_edges(np.concatenate(list(coefficients.values())), NUM_BINS).tolist()
    for axes, (name, values) in zip(grid.flat, coefficients.items(), strict=False):
        style_axes(axes)
        axes.hist(values, edges, histtype="stepfilled", color=COLORS[0])
        axes.set_title(name, fontsize="medium")
    for number in range(len(coefficients), grid.size):
        grid.flat[number].remove()
        grid.flat[number - num_columns].tick_params(labelbottom=True)
    figure.supxlabel("value of the coefficient", fontsize="medium")
    figure.supylabel("sets of coefficients", fontsize="medium")
    add_title(figure, title)
    return figure


def make_returns_figure(
    title: str, morphologies: Sequence[str], rows: Mapping[str, Mapping[str, tuple[Estimate, bool]]]
) -> "Figure":
    """One line for each row over the morphologies: the mean return, and whether the morphology was seen in training."""
    figure, axes = make_figure_with_axes("morphology (filled: seen in training)", "mean return, 95 % interval")
    for number, (name, bars) in enumerate(rows.items()):
        shift = 0.06 * (number - (len(rows) - 1) / 2)
        positions = [morphologies.index(morphology) + shift for morphology in bars]
        means = [mean.value for mean, _ in bars.values()]
        (line,) = axes.plot(positions, means, lw=0.8, alpha=0.6, label=name)
        for position, (mean, is_seen) in zip(positions, bars.values(), strict=True):
            spread = [[mean.value - mean.low], [mean.high - mean.value]]
            face = line.get_color() if is_seen else "white"
            axes.errorbar(position, mean.value, spread, fmt="o", color=line.get_color(), mfc=face, capsize=3)
    axes.set_xticks(range(len(morphologies)), morphologies)
    add_title(figure, title)
    add_legend(figure, axes)
    return figure


def _draw_trajectories(axes: "Axes", trajectories: Sequence[Float32[np.ndarray, "_env_steps synapses"]]) -> None:
    style_axes(axes)
    projected, shares = project_on_principal_components(trajectories)
    for number, points in enumerate(projected, 1):
        (line,) = axes.plot(*points.T, lw=0.6, label=f"episode {number}")
        axes.plot(*points[0], "o", ms=5, color=line.get_color(), zorder=3)
        axes.plot(*points[-1], "s", ms=6, color=line.get_color(), mec="black", zorder=3)
    axes.set_xlabel(f"PC 1, {shares[0]:.0%} of variance\n(circle: start)")
    axes.set_ylabel(f"PC 2, {shares[1]:.0%} of variance\n(square: end)")


def _draw_changes(axes: "Axes", recording: WeightRecording, layers: Sequence[int]) -> None:
    style_axes(axes)
    for layer in layers:
        axes.plot(recording.updated_at, recording.changes[:, layer - 1], lw=0.8, label=f"layer {layer}")
    if (recording.changes[:, [layer - 1 for layer in layers]] > 0).any():
        axes.set_yscale("log")
    axes.set_title("learning in episode 1", fontsize="medium")
    axes.set_xlabel("env step")
    axes.set_ylabel("mean absolute change\nof weight")
