"""The programs `evaluate_static` and `evaluate_hebbian`: they play episodes with saved policies and report the returns."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from hebbes.contracts.engine import EngineError
from hebbes.evaluation.entries import Entry, Evaluated
from hebbes.evaluation.play import Played, play_seeds, watch_all
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.flags import parse_options
from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.programs.evaluation_report import report
from hebbes.programs.exit_status import one_line_errors, signals_end_cleanly
from hebbes.programs.import_reference import refuse_reference_flags
from hebbes.recording.standard_output import only_results_on_stdout, stop_message, try_to_write
from hebbes.reporting.evaluation_plots import write_plots
from hebbes.reporting.video import film_episode


def evaluate_static(description: str) -> None:
    """Evaluates policies of any kind."""
    evaluate(EvaluateConfig, description)


def evaluate_hebbian(description: str) -> None:
    """Evaluates policies of any kind, plastic ones with interventions and plots too."""
    with one_line_errors():
        refuse_reference_flags(sys.argv[1:])
    evaluate(HebbianEvaluateConfig, description)


def evaluate(owner: type[EvaluateConfig], description: str) -> None:
    """Parses and checks, then plays episodes with policy files of any kind, and reports and compares their returns.

    `owner` has the options. What cannot be played is reported beside what can, and video and figures are written as far
    as they can be; the status is 1 then.
    """
    with signals_end_cleanly():
        with one_line_errors():
            config = owner(**parse_options(owner, sys.argv[1:], description))
        with only_results_on_stdout() as results:
            with one_line_errors():
                entries = load_entries(config)
            evaluated = _played(config, entries)
            text = report(config, evaluated)
            printed = try_to_write("results", lambda: print(text, file=results, flush=True))
            told = sys.stderr if config.json else results  # the output of --json is one object and nothing else
            filmed = try_to_write("video", lambda: _film(config, evaluated[0], told))
            plotted = try_to_write("plots", lambda: _plot(config, evaluated, told))
            if not (printed and filmed and plotted) or any(each.lost for each in evaluated):
                sys.exit(1)


def _played(config: EvaluateConfig, entries: Sequence[Entry]) -> list[Evaluated]:
    """Plays every entry."""
    evaluated = []
    for entry in entries:
        try:
            evaluated.append(Evaluated(entry, _play(config, entry)))
        except EngineError as error:
            print(stop_message(EngineError(f"{entry.path}: {error}")), file=sys.stderr)
            shape = len(config.all_seeds), config.episodes
            played = Played(np.full(shape, np.nan), {str(error).partition("\n")[0]: shape[0] * shape[1]})
            evaluated.append(Evaluated(entry, played, lost=True))
    return evaluated


def _play(config: EvaluateConfig, entry: Entry) -> Played:
    """Plays the episodes, on the screen where the config says so."""
    common: dict[str, Any] = {"episodes": config.episodes, "max_episode_steps": config.max_episode_steps}
    if config.render:
        return watch_all(entry.saved, entry.environment, seed=config.seed, **common)
    common |= {"threads": config.threads, "episode_timeout": config.episode_timeout}
    return play_seeds(entry.saved, entry.environment, seeds=config.all_seeds, **common)


def _film(config: EvaluateConfig, first: Evaluated, told: TextIO) -> None:
    """Films the first episode if asked to, and says so; one that was lost could take this process with it."""
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
    _tell(f"video  {config.video}  {video.frames} frames, {video.seconds:.2f} s", told)


def _plot(config: EvaluateConfig, evaluated: Sequence[Evaluated], told: TextIO) -> None:
    """Writes the plots asked for and names them."""
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
        _tell(f"plot  {path}", told)


def _tell(line: str, told: TextIO) -> None:
    """Prints a line; whether what it tells of is there does not depend on anybody reading it."""
    with suppress(OSError):
        print(line, file=told, flush=True)
