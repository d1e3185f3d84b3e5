"""The plots of an evaluation of plastic networks: one for each plastic file, and one over several morphologies."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from hebbes.environments.morphologies import short_name
from hebbes.evaluation.entries import Entry, Evaluated
from hebbes.evaluation.weight_recording import MAX_ENV_STEPS, WeightRecording, record_weights
from hebbes.policies.coefficients import coefficients_by_name
from hebbes.policies.hebbian import Hebbian
from hebbes.reporting.plasticity_plots import Bar, plot_plasticity, plot_returns_by_body
from hebbes.statistics.intervals import summarize

NUM_EPISODES = 5
"""Episodes whose weights are drawn, or all where fewer are played."""


def make_plots_folder(folder: Path) -> None:
    """Makes the folder; ValueError where that cannot be done, or nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"plots {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"plots {folder}: nothing can be written to this folder")


def write_plots(
    evaluated: Sequence[Evaluated],
    folder: Path,
    *,
    layers: Sequence[int],
    num_episodes: int,
    seed: int,
    max_episode_steps: int | None,
) -> Iterator[Path]:
    """Writes the plots that can be and yields their paths; in the end OSError or ValueError if any could not.

    What was lost in the evaluation is not played again: it could take this process with it. The others play the first
    episodes of the seed once more.
    `layers` are those whose weights are drawn, from 1; all if there are none.
    """
    refused = []
    paths = list(dict.fromkeys(each.entry.path for each in evaluated))
    record = partial(
        record_weights,
        episodes=min(num_episodes, NUM_EPISODES),
        seed=seed,
        max_env_steps=min(max_episode_steps or MAX_ENV_STEPS, MAX_ENV_STEPS),
    )
    for number, path in enumerate(paths, 1):
        first = next(each for each in evaluated if each.entry.path == path)  # intact, on its first morphology
        policy = first.entry.saved.policy
        if first.lost or not isinstance(policy, Hebbian):
            continue
        png = folder / f"{number}_{Path(path).stem}.png"
        try:
            yield _plot_plasticity(record(first.entry.saved, policy, first.entry.environment), first.entry, layers, png)
        except ValueError as error:
            refused.append(f"{path}: {error}")
    morphologies = list(dict.fromkeys(short_name(each.entry.body) for each in evaluated))
    if len(morphologies) > 1:
        yield _plot_morphologies(evaluated, paths, morphologies, folder / "return_by_body.png")
    if refused:
        raise ValueError("; ".join(refused))


def _plot_plasticity(recordings: Sequence[WeightRecording], entry: Entry, layers: Sequence[int], png: Path) -> Path:
    if not recordings:
        raise ValueError("no episode could begin")
    assert isinstance(entry.saved.policy, Hebbian)
    drawn = layers or range(1, len(recordings[0].trajectories) + 1)
    coefficients = coefficients_by_name(entry.saved.policy, entry.saved.weights)
    plot_plasticity(png, entry.path, recordings, coefficients, drawn)
    return png


def _plot_morphologies(
    evaluated: Sequence[Evaluated], paths: Sequence[str], morphologies: Sequence[str], png: Path
) -> Path:
    rows: dict[str, dict[str, Bar]] = {}
    for each in evaluated:
        mean = summarize(each.played.returns).mean
        name = f"{paths.index(each.entry.path) + 1} {each.entry.path} {each.entry.variant}".rstrip()
        rows.setdefault(name, {})[short_name(each.entry.body)] = Bar(mean.value, mean.low, mean.high, each.entry.seen)
    plot_returns_by_body(png, morphologies, rows)
    return png
