"""The programs behind the scripts of the top level: train, evaluate."""

import sys
from pathlib import Path
from typing import Any

from contracts.engine import EngineError
from reporting.console import only_results_on_stdout
from training.command_line import parse_configs, parse_options
from training.evaluation import film, play_seeds, watch_all
from training.evaluation_options import Entry, EvaluateConfig, checked_entries
from training.evaluation_report import Evaluated, report
from training.exit_status import one_line_errors, signals_end_cleanly, stopped
from training.loop import TrainingError
from training.preparation import prepare
from training.run import execute_all


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


def evaluate(description: str) -> None:
    """Parses and checks, then plays episodes with policy files of any kind, and reports and compares their returns."""
    with signals_end_cleanly():
        with one_line_errors():
            config = EvaluateConfig(**parse_options(EvaluateConfig, sys.argv[1:], description))
        with only_results_on_stdout() as results:
            with one_line_errors():
                entries = checked_entries(config)
            try:
                evaluated = [_evaluated(config, entry) for entry in entries]
            except EngineError as error:
                sys.exit(stopped(error))
            print(report(config, evaluated), file=results, flush=True)
            if config.video is not None:
                _write_video(config, config.video, entries[0])


def _evaluated(config: EvaluateConfig, entry: Entry) -> Evaluated:
    """Plays the episodes, on the screen where the config says so."""
    common: dict[str, Any] = {"episodes": config.episodes, "max_episode_steps": config.max_episode_steps}
    if config.render:
        return Evaluated(entry, watch_all(entry.saved, entry.environment, seed=config.seed, **common))
    common |= {"threads": config.threads, "episode_timeout": config.episode_timeout}
    return Evaluated(entry, play_seeds(entry.saved, entry.environment, seeds=config.all_seeds, **common))


def _write_video(config: EvaluateConfig, path: str, entry: Entry) -> None:
    """Films the first episode; ends the program with status 1 where that cannot be done."""
    try:
        film(Path(path), entry.saved, entry.environment, seed=config.seed, max_episode_steps=config.max_episode_steps)
    except (OSError, ValueError, NotImplementedError) as error:
        sys.exit(f"no video: {' '.join(str(error).split()) or type(error).__name__}")
