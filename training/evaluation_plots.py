"""The figures of an evaluation of plastic networks: one for each plastic file, and one over several bodies."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from policies.coefficients import coefficients_by_name
from policies.hebbian import Hebbian
from reporting.plasticity_plots import Bar, plot_plasticity, plot_returns_by_body
from rollouts.bodies import short_name
from training.evaluation import summarise
from training.evaluation_options import Entry, EvaluateConfig, Evaluated
from training.plastic_lives import MAX_ENV_STEPS, recorded_lives

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
    config: EvaluateConfig, evaluated: Sequence[Evaluated], folder: Path, layers: Sequence[int]
) -> Iterator[Path]:
    """Writes the figures that can be and yields their paths; in the end OSError or ValueError if any could not.

    What was lost in the evaluation is not played again: it could take this process with it.
    `layers` are those whose weights are drawn, from 1; all if there are none.
    """
    refused = []
    for number, path in enumerate(config.path_weights, 1):
        first = next(each for each in evaluated if each.entry.path == path)  # intact, on its first body
        policy = first.entry.saved.policy
        if first.lost or not isinstance(policy, Hebbian):
            continue
        try:
            png = folder / f"{number}_{Path(path).stem}.png"
            yield _plot_plasticity(config, first.entry, policy, layers, png)
        except ValueError as error:
            refused.append(f"{path}: {error}")
    bodies = list(dict.fromkeys(short_name(each.entry.body) for each in evaluated))
    if len(bodies) > 1:
        yield _plot_bodies(config, evaluated, bodies, folder / "return_by_body.png")
    if refused:
        raise ValueError("; ".join(refused))


def _plot_plasticity(config: EvaluateConfig, entry: Entry, policy: Hebbian, layers: Sequence[int], png: Path) -> Path:
    lives = recorded_lives(
        entry.saved,
        policy,
        entry.environment,
        episodes=min(config.episodes, NUM_EPISODES),
        seed=config.seed,
        max_env_steps=min(config.max_episode_steps or MAX_ENV_STEPS, MAX_ENV_STEPS),
    )
    if not lives:
        raise ValueError("no episode could begin")
    drawn = layers or range(1, len(lives[0].trajectories) + 1)
    plot_plasticity(png, entry.path, lives, coefficients_by_name(policy, entry.saved.weights), drawn)
    return png


def _plot_bodies(config: EvaluateConfig, evaluated: Sequence[Evaluated], bodies: Sequence[str], png: Path) -> Path:
    rows: dict[str, dict[str, Bar]] = {}
    for each in evaluated:
        mean = summarise(each.played.returns).mean
        name = f"{config.path_weights.index(each.entry.path) + 1} {each.entry.path} {each.entry.variant}".rstrip()
        rows.setdefault(name, {})[short_name(each.entry.body)] = Bar(mean.value, mean.low, mean.high, each.entry.seen)
    plot_returns_by_body(png, bodies, rows)
    return png
