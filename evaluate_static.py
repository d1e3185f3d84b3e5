"""Plays episodes with the weights of policy files, and reports and compares their returns."""

import sys
from pathlib import Path
from typing import Any

from contracts.engine import EngineError
from reporting.console import only_results_on_stdout
from training.command_line import parse_options
from training.evaluation import film, play_seeds, watch_all
from training.evaluation_options import Entry, EvaluateConfig, checked_entries
from training.evaluation_report import Evaluated, report
from training.exit_status import one_line_errors, signals_end_cleanly, stopped


def evaluate(config: EvaluateConfig, entry: Entry) -> Evaluated:
    """Plays the episodes, on the screen where the config says so."""
    common: dict[str, Any] = {"episodes": config.episodes, "max_episode_steps": config.max_episode_steps}
    if config.render:
        return Evaluated(entry, watch_all(entry.saved, entry.environment, seed=config.seed, **common))
    common |= {"threads": config.threads, "episode_timeout": config.episode_timeout}
    return Evaluated(entry, play_seeds(entry.saved, entry.environment, seeds=config.all_seeds, **common))


def write_video(config: EvaluateConfig, path: str, entry: Entry) -> None:
    """Films the first episode; ends the program with status 1 where that cannot be done."""
    try:
        film(Path(path), entry.saved, entry.environment, seed=config.seed, max_episode_steps=config.max_episode_steps)
    except (OSError, ValueError, NotImplementedError) as error:
        sys.exit(f"no video: {' '.join(str(error).split()) or type(error).__name__}")


def main() -> None:
    """Parses and checks, then plays."""
    with signals_end_cleanly():
        with one_line_errors():
            config = EvaluateConfig(**parse_options(EvaluateConfig, sys.argv[1:], __doc__))
        with only_results_on_stdout() as results:
            with one_line_errors():
                entries = checked_entries(config)
            try:
                evaluated = [evaluate(config, entry) for entry in entries]
            except EngineError as error:
                sys.exit(stopped(error))
            print(report(config, evaluated), file=results, flush=True)
            if config.video is not None:
                write_video(config, config.video, entries[0])


if __name__ == "__main__":  # worker processes import this file
    main()
