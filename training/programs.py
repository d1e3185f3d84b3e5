"""The programs behind the scripts of the top level: train, evaluate, convert."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from contracts.engine import EngineError
from reporting.console import only_results_on_stdout
from training.command_line import parse_configs, parse_options
from training.evaluation import Played, film, play_seeds, watch_all
from training.evaluation_options import Entry, EvaluateConfig, checked_entries
from training.evaluation_plots import write_plots
from training.evaluation_report import Evaluated, report
from training.exit_status import one_line_errors, signals_end_cleanly, stopped
from training.hebbian_evaluation import HebbianEvaluateConfig
from training.loop import TrainingError
from training.preparation import prepare
from training.reference_import import refuse_reference_flags
from training.run import execute_all

Options = TypeVar("Options")


def train(trainer: str, description: str) -> None:
    """Parses and checks, then trains; `trainer` is a name of `training.config.TRAINERS`."""
    with signals_end_cleanly():
        with one_line_errors():
            configs = parse_configs(trainer, sys.argv[1:], description)
            runs = [run for config in configs for run in prepare(config)]
        try:
            execute_all(runs)
        except (EngineError, TrainingError) as error:
            sys.exit(stopped(error))


def evaluate(owner: type[EvaluateConfig], description: str) -> None:
    """Parses and checks, then plays episodes with policy files of any kind, and reports and compares their returns.

    `owner` has the options. What cannot be played is reported beside what can, and the status is 1.
    """
    with signals_end_cleanly():
        with one_line_errors():
            refuse_reference_flags(sys.argv[1:])
            config = owner(**parse_options(owner, sys.argv[1:], description))
        with only_results_on_stdout() as results:
            with one_line_errors():
                entries = checked_entries(config)
            evaluated, all_played = _played(config, entries)
            print(report(config, evaluated), file=results, flush=True)
            if not all_played:
                sys.exit(1)
            if config.video is not None:
                _write_video(config, config.video, entries[0])
            if isinstance(config, HebbianEvaluateConfig) and config.plots is not None:
                _write_plots(config, evaluated)


def convert(owner: type[Options], work: Callable[[Options], str], description: str) -> None:
    """Parses the options of `owner`, lets `work` make a policy file from others, and prints what it says."""
    with signals_end_cleanly(), one_line_errors():
        print(work(owner(**parse_options(owner, sys.argv[1:], description))), flush=True)


def _played(config: EvaluateConfig, entries: Sequence[Entry]) -> tuple[list[Evaluated], bool]:
    """Plays every entry, and says whether that could be done; where not, all its episodes have failed."""
    evaluated, all_played = [], True
    for entry in entries:
        try:
            played = _play(config, entry)
        except EngineError as error:
            print(stopped(EngineError(f"{entry.path}: {error}")), file=sys.stderr)
            shape = len(config.all_seeds), config.episodes
            played = Played(np.full(shape, np.nan), {str(error).partition("\n")[0]: shape[0] * shape[1]})
            all_played = False
        evaluated.append(Evaluated(entry, played))
    return evaluated, all_played


def _play(config: EvaluateConfig, entry: Entry) -> Played:
    """Plays the episodes, on the screen where the config says so."""
    common: dict[str, Any] = {"episodes": config.episodes, "max_episode_steps": config.max_episode_steps}
    if config.render:
        return watch_all(entry.saved, entry.environment, seed=config.seed, **common)
    common |= {"threads": config.threads, "episode_timeout": config.episode_timeout}
    return play_seeds(entry.saved, entry.environment, seeds=config.all_seeds, **common)


def _write_video(config: EvaluateConfig, path: str, entry: Entry) -> None:
    """Films the first episode; ends the program with status 1 where that cannot be done."""
    try:
        film(Path(path), entry.saved, entry.environment, seed=config.seed, max_episode_steps=config.max_episode_steps)
    except (OSError, ValueError, NotImplementedError) as error:
        sys.exit(f"no video: {' '.join(str(error).split()) or type(error).__name__}")


def _write_plots(config: HebbianEvaluateConfig, evaluated: Sequence[Evaluated]) -> None:
    """Writes the figures and names them; ends the program with status 1 where that cannot be done."""
    try:
        for path in write_plots(config, evaluated):
            print(f"plot  {path}", flush=True)
    except (OSError, ValueError) as error:
        sys.exit(f"no plots: {' '.join(str(error).split()) or type(error).__name__}")
