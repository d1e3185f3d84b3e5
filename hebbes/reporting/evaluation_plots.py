"""Plots of an evaluation of plastic networks: two for each file of a plastic network, and one over morphologies."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hebbes.environments.morphologies import shorten_morphology_name
from hebbes.evaluation.entries import Entry, EvaluationResult
from hebbes.evaluation.weight_recording import WeightRecording, record_weights
from hebbes.policies.coefficients import read_coefficients_by_name
from hebbes.policies.hebbian import Hebbian
from hebbes.reporting.figure import write_figure
from hebbes.reporting.plasticity_plots import make_coefficients_figure, make_returns_figure, make_weights_figure
from hebbes.statistics.intervals import Estimate


def make_plots_folder(folder: Path) -> None:
    """Makes the folder. Raises ValueError if that fails, or if nothing can be written to the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"plots {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"plots {folder}: nothing can be written to this folder")


def write_plots(
    results: Sequence[EvaluationResult],
    folder: Path,
    *,
    layers: Sequence[int],
    num_episodes: int,
    seed: int,
    max_episode_steps: int | None,
) -> Iterator[Path]:
    """Writes every plot that it can, and yields their paths. Then raises ValueError if one failed.

    Every policy plays the first episodes of the seed again. A policy whose evaluation was lost is skipped, because
    it could end this process, too.
    `layers` are the numbers (from 1) of the layers whose weights are plotted. All layers if it is empty.
    """
    refused = []
    paths = list(dict.fromkeys(result.entry.path for result in results))
    for number, path in enumerate(paths, 1):
        # The first result of a file is the one without intervention, in its first morphology.
        first = next(result for result in results if result.entry.path == path)
        if first.lost or not isinstance(first.entry.saved.policy, Hebbian):
            continue
        stem = folder / f"{number}_{Path(path).stem}"
        try:
            saved, environment = first.entry.saved, first.entry.environment
            recordings = record_weights(
                saved, environment, episodes=num_episodes, seed=seed, max_episode_steps=max_episode_steps
            )
            yield from _plot_plasticity(recordings, first.entry, layers, stem)
        except (OSError, ValueError) as error:
            refused.append(f"{path}: {error}")
    morphologies = list(dict.fromkeys(shorten_morphology_name(result.entry.morphology) for result in results))
    if len(morphologies) > 1:
        file = folder / "return_by_morphology.png"
        try:
            yield _plot_morphologies(results, paths, morphologies, file)
        except OSError as error:
            refused.append(f"{file}: {error}")
    if refused:
        raise ValueError("; ".join(refused))


def _plot_plasticity(
    recordings: Sequence[WeightRecording], entry: Entry, layers: Sequence[int], stem: Path
) -> Iterator[Path]:
    """Writes the weights and the coefficients of a policy, and yields the paths, which begin with `stem`."""
    if not recordings:
        raise ValueError("no episode could begin")
    assert isinstance(entry.saved.policy, Hebbian)
    title = f"{entry.environment.environment}: {entry.path}"
    drawn = layers or range(1, len(recordings[0].trajectories) + 1)
    figures = {
        "weights": make_weights_figure(title, recordings, drawn),
        "coefficients": make_coefficients_figure(
            title, read_coefficients_by_name(entry.saved.policy, entry.saved.weights)
        ),
    }
    for name, figure in figures.items():
        png = stem.with_name(f"{stem.name}_{name}.png")
        write_figure(figure, png)
        yield png


def _plot_morphologies(
    results: Sequence[EvaluationResult], paths: Sequence[str], morphologies: Sequence[str], png: Path
) -> Path:
    rows: dict[str, dict[str, tuple[Estimate, bool]]] = {}
    for result in results:
        name = f"{paths.index(result.entry.path) + 1} {result.entry.path} {result.entry.variant}".rstrip()
        morphology = shorten_morphology_name(result.entry.morphology)
        rows.setdefault(name, {})[morphology] = result.summary.mean, result.entry.seen
    environments = dict.fromkeys(result.entry.environment.environment for result in results)
    write_figure(make_returns_figure(", ".join(environments), morphologies, rows), png)
    return png
