"""Plays the episodes of an evaluation, and reports and compares their returns."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import numpy as np

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import say
from hebbes.evaluation.entries import Entry, EvaluationResult
from hebbes.evaluation.play import play, play_episode
from hebbes.execution.join_rollouts import sum_entries
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.programs.evaluation_report import format_report
from hebbes.programs.exit_status import report_errors_in_one_line
from hebbes.recording.console import Console
from hebbes.recording.standard_output import format_stop_message, reserve_stdout_for_results, try_to_write
from hebbes.reporting.evaluation_plots import write_plots
from hebbes.reporting.video import film_episode


def run_evaluation(config: EvaluateConfig) -> bool:
    """Plays episodes with policy files, and reports and compares returns; returns whether all could be done.

    If a file cannot be played, or a video or plot cannot be written, the rest is still reported and written.
    """
    with reserve_stdout_for_results() as results:
        with Console(sys.stderr) as console:
            with report_errors_in_one_line(), console.phase("reading policies"):
                entries = load_entries(config)
            evaluated = play_all(config, entries, console)
            with console.phase("computing intervals"):
                text = format_report(config, evaluated)
        printed = try_to_write("results", lambda: print(text, file=results, flush=True))
        notices = sys.stderr if config.json else results  # the output of --json is one object and nothing else
        with Console(sys.stderr) as console, console.phase("filming"):
            filmed = try_to_write("video", lambda: _film(config, evaluated[0], notices))
        with Console(sys.stderr) as console, console.phase("plotting"):
            plotted = try_to_write("plots", lambda: _plot(config, evaluated, notices))
        return printed and filmed and plotted and not any(each.lost for each in evaluated)


def play_all(config: EvaluateConfig, entries: Sequence[Entry], console: Console) -> list[EvaluationResult]:
    """Plays every entry; one whose engine fails is reported, and has only NaN as returns."""
    evaluated = []
    for number, entry in enumerate(entries, 1):
        try:
            with console.phase(f"policy {number} of {len(entries)}"):
                evaluated.append(_show_entry(config, entry) if config.render else play_entry(config, entry, console))
        except (EngineError, ValueError, OSError) as error:  # the others while episodes are shown
            say(format_stop_message(EngineError(f"{entry.path}: {error}")))
            shape = len(config.all_seeds), config.episodes
            faults = {str(error).partition("\n")[0]: shape[0] * shape[1]}
            evaluated.append(EvaluationResult(entry, np.full(shape, np.nan), faults, lost=True))
    return evaluated


def play_entry(config: EvaluateConfig, entry: Entry, console: Console | None = None) -> EvaluationResult:
    """Plays the episodes of an entry, each seed on an engine of its own."""
    rollouts = [
        play(
            entry.saved,
            entry.environment,
            episodes=config.episodes,
            seed=seed,
            threads=config.threads,
            max_episode_steps=config.max_episode_steps,
            episode_timeout=config.episode_timeout,
            console=console,
        )
        for seed in config.all_seeds
    ]
    returns = np.stack([each.fitness for each in rollouts])
    return EvaluationResult(entry, returns, sum_entries(each.faults for each in rollouts))


def _show_entry(config: EvaluateConfig, entry: Entry) -> EvaluationResult:
    """Shows the episodes of an entry on the screen, one after another."""
    cap = config.max_episode_steps
    shown = [
        play_episode(
            entry.saved, entry.environment, episode=k, seed=config.seed, max_episode_steps=cap, render_mode="human"
        )
        for k in range(config.episodes)
    ]
    returns = np.array([[each.returns[0] for each in shown]])
    return EvaluationResult(entry, returns, sum_entries(each.faults for each in shown))


def _film(config: EvaluateConfig, first: EvaluationResult, notices: TextIO) -> None:
    """Films the first episode if the config says so, unless its simulator crashed: it could crash this process too."""
    if config.video is None:
        return
    if first.lost:
        raise ValueError(f"{first.entry.path} could not be played")
    path, entry, cap = Path(config.video), first.entry, config.max_episode_steps
    video = film_episode(path, entry.saved, entry.environment, seed=config.seed, max_episode_steps=cap)
    _print_line(f"video  {config.video}  {video.num_frames} frames, {video.seconds:.2f} s", notices)


def _plot(config: EvaluateConfig, evaluated: Sequence[EvaluationResult], notices: TextIO) -> None:
    """Writes the plots that the config asks for, and prints their paths."""
    if not isinstance(config, HebbianEvaluateConfig) or config.plots is None:
        return
    plots = write_plots(
        evaluated,
        Path(config.plots),
        layers=config.plot_layers,
        num_episodes=config.episodes,
        seed=config.seed,
        max_episode_steps=config.max_episode_steps,
    )
    for path in plots:
        _print_line(f"plot  {path}", notices)


def _print_line(line: str, notices: TextIO) -> None:
    """Prints a line about a file that was written; it is no failure if nobody reads the line."""
    with suppress(OSError):
        print(line, file=notices, flush=True)
