"""The programs `evaluate_static` and `evaluate_hebbian`, which play episodes with saved policies and report returns."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from hebbes.contracts.engine import EngineError
from hebbes.evaluation.entries import Entry, EvaluationResult
from hebbes.evaluation.play import PlayResult, play_seeds, watch_episodes
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.flags import parse_options
from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.programs.evaluation_report import format_report
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line
from hebbes.programs.import_reference import refuse_reference_flags
from hebbes.recording.standard_output import format_stop_message, reserve_stdout_for_results, try_to_write
from hebbes.reporting.evaluation_plots import write_plots
from hebbes.reporting.video import film_episode


def evaluate_static(description: str) -> None:
    """Evaluates policies of any kind."""
    evaluate(EvaluateConfig, description)


def evaluate_hebbian(description: str) -> None:
    """Evaluates policies of any kind; for plastic ones also with interventions and plots."""
    with report_errors_in_one_line():
        refuse_reference_flags(sys.argv[1:])
    evaluate(HebbianEvaluateConfig, description)


def evaluate(owner: type[EvaluateConfig], description: str) -> None:
    """Parses and checks the options of `owner`, plays episodes with policy files, and reports and compares returns.

    If a file cannot be played, or a video or plot cannot be written, the program still reports and writes the rest. Its
    status is 1 then.
    """
    with end_cleanly_on_signals():
        with report_errors_in_one_line():
            config = owner(**parse_options(owner, sys.argv[1:], description))
        with reserve_stdout_for_results() as results:
            with report_errors_in_one_line():
                entries = load_entries(config)
            evaluated = _play_all(config, entries)
            text = format_report(config, evaluated)
            printed = try_to_write("results", lambda: print(text, file=results, flush=True))
            notices = sys.stderr if config.json else results  # the output of --json is one object and nothing else
            filmed = try_to_write("video", lambda: _film(config, evaluated[0], notices))
            plotted = try_to_write("plots", lambda: _plot(config, evaluated, notices))
            if not (printed and filmed and plotted) or any(each.lost for each in evaluated):
                sys.exit(1)


def _play_all(config: EvaluateConfig, entries: Sequence[Entry]) -> list[EvaluationResult]:
    """Plays every entry; one whose engine fails is reported, and has only NaN as returns."""
    evaluated = []
    for entry in entries:
        try:
            evaluated.append(EvaluationResult(entry, _play_entry(config, entry)))
        except EngineError as error:
            print(format_stop_message(EngineError(f"{entry.path}: {error}")), file=sys.stderr)
            shape = len(config.all_seeds), config.episodes
            faults = {str(error).partition("\n")[0]: shape[0] * shape[1]}
            played = PlayResult(np.full(shape, np.nan), faults, np.zeros(shape, np.int64))
            evaluated.append(EvaluationResult(entry, played, lost=True))
    return evaluated


def _play_entry(config: EvaluateConfig, entry: Entry) -> PlayResult:
    """Plays the episodes of an entry, on the screen if the config says so."""
    common: dict[str, Any] = {"episodes": config.episodes, "max_episode_steps": config.max_episode_steps}
    if config.render:
        return watch_episodes(entry.saved, entry.environment, seed=config.seed, **common)
    common |= {"threads": config.threads, "episode_timeout": config.episode_timeout}
    return play_seeds(entry.saved, entry.environment, seeds=config.all_seeds, **common)


def _film(config: EvaluateConfig, first: EvaluationResult, notices: TextIO) -> None:
    """Films the first episode if the config says so, unless its simulator crashed: it could crash this process too."""
    if config.video is None:
        return
    if first.lost:
        raise ValueError(f"{first.entry.path} could not be played")
    video = film_episode(
        Path(config.video),
        first.entry.saved,
        first.entry.environment,
        seed=config.seed,
        max_episode_steps=config.max_episode_steps,
    )
    _print_line(f"video  {config.video}  {video.num_frames} frames, {video.seconds:.2f} s", notices)


def _plot(config: EvaluateConfig, evaluated: Sequence[EvaluationResult], notices: TextIO) -> None:
    """Writes the plots that the config asks for, and prints their paths."""
    if config.plots_folder is None:
        return
    plots = write_plots(
        evaluated,
        config.plots_folder,
        layers=config.plotted_layers,
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
