"""The programs behind the scripts of the top level: train, evaluate, convert."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np

from contracts.engine import EngineError
from reporting.console import only_results_on_stdout
from training.command_line import parse_configs
from training.config import TrainConfig
from training.evaluation import Played, film, play_seeds, watch_all
from training.evaluation_options import Entry, EvaluateConfig, Evaluated, checked_entries
from training.evaluation_report import report
from training.exit_status import one_line_errors, print_all, signals_end_cleanly, stopped, written
from training.flags import parse_options
from training.loop import TrainingError
from training.preparation import prepare
from training.run import execute_all
from training.runs import Runs

Options = TypeVar("Options")


def train(trainer: str, description: str) -> None:
    """Parses and checks, then trains; `trainer` is a name of `training.trainers.TRAINERS`."""
    with signals_end_cleanly():
        with one_line_errors():
            runs = runs_asked_for(trainer, sys.argv[1:], description)
        try:
            all_written = execute_all(runs)
        except (EngineError, TrainingError) as error:
            sys.exit(stopped(error))
        if not all_written:
            sys.exit(1)


def runs_asked_for(trainer: str, arguments: Sequence[str], description: str) -> Runs:
    """The runs that a command line asks for, the first of them ready; ValueError where something does not fit."""

    def options_of(folder: Path) -> TrainConfig:
        (config,) = parse_configs(trainer, [*arguments, "--resume", str(folder)], description)
        return config

    (config,) = parse_configs(trainer, arguments, description)
    return prepare(config, options_of)


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
                entries = checked_entries(config)
            evaluated = _played(config, entries)
            text = report(config, evaluated)
            printed = written("results", lambda: print(text, file=results, flush=True))
            told = sys.stderr if config.json else results  # the output of --json is one object and nothing else
            filmed = written("video", lambda: _film(config, evaluated[0], told))
            plotted = written("plots", lambda: _plot(config, evaluated, told))
            if not (printed and filmed and plotted) or any(each.lost for each in evaluated):
                sys.exit(1)


def convert(owner: type[Options], work: Callable[[Options], str], description: str) -> None:
    """Parses the options of `owner`, lets `work` make a policy file from others, and prints what it says."""
    with signals_end_cleanly():
        with one_line_errors():
            text = work(owner(**parse_options(owner, sys.argv[1:], description)))
        print_all(text)


def _played(config: EvaluateConfig, entries: Sequence[Entry]) -> list[Evaluated]:
    """Plays every entry."""
    evaluated = []
    for entry in entries:
        try:
            evaluated.append(Evaluated(entry, _play(config, entry)))
        except EngineError as error:
            print(stopped(EngineError(f"{entry.path}: {error}")), file=sys.stderr)
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
    video = film(
        Path(config.video),
        first.entry.saved,
        first.entry.environment,
        seed=config.seed,
        max_episode_steps=config.max_episode_steps,
    )
    _tell(f"video  {config.video}  {video.frames} frames, {video.seconds:.2f} s", told)


def _plot(config: EvaluateConfig, evaluated: Sequence[Evaluated], told: TextIO) -> None:
    """Writes the figures asked for and names them."""
    for path in config.write_plots(evaluated):
        _tell(f"plot  {path}", told)


def _tell(line: str, told: TextIO) -> None:
    """Prints a line; whether what it tells of is there does not depend on anybody reading it."""
    with suppress(OSError):
        print(line, file=told, flush=True)
