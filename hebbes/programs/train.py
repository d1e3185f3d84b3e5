"""The programs `train_static`, `train_hebbian` and `train_hybrid`, which search for a policy for an environment.

The options are parsed before the modules that train are imported, because those take a second or two.
"""

import gc
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hebbes.contracts.engine import EngineError
from hebbes.options.command_line import parse_config
from hebbes.options.presets import describe_untuned, find_preset
from hebbes.options.resuming import resume_config
from hebbes.options.texts import format_options, split_arguments
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line
from hebbes.recording.console import Console
from hebbes.recording.standard_output import format_stop_message
from hebbes.training.advice import TrainingError
from hebbes.training.config import TrainConfig

if TYPE_CHECKING:
    from hebbes.training.runs import Runs


def train(trainer: str, description: str) -> None:
    """Parses and checks the options, then trains; `trainer` is a key of `hebbes.registry.tables.TRAINERS`."""
    with end_cleanly_on_signals(), Console() as console:
        with report_errors_in_one_line(), console.phase("starting"):
            runs = prepare_runs(trainer, sys.argv[1:], description, console)
        from hebbes.training.run import execute_all

        try:
            all_written = execute_all(runs, console)
        except (EngineError, TrainingError) as error:
            sys.exit(format_stop_message(error))
        if not all_written:
            sys.exit(1)


train_static = partial(train, "static")
train_hebbian = partial(train, "hebbian")
train_hybrid = partial(train, "hybrid")


def prepare_runs(trainer: str, arguments: Sequence[str], description: str, console: Console) -> "Runs":
    """The runs that a command line describes, the first of them prepared; ValueError if options do not fit together."""

    def read_config(folder: Path) -> TrainConfig:
        one_seed = {"resume": str(folder), "seeds": 1, "seed": int(folder.name.removeprefix("seed"))}
        others = [each for each in split_arguments(arguments) if each[0].removeprefix("run.") not in one_seed]
        return resume_config(trainer, [*others, *format_options(one_seed)])

    config = parse_config(trainer, arguments, description)
    console.is_quiet = config.run.quiet
    from hebbes.training.prepare import prepare

    gc.freeze()  # modules stay: neither the training nor the exit looks for garbage among them
    runs = prepare(config, read_config)
    is_default = config.run.resume is config.run.preset is config.run.config is None
    if is_default and (notice := describe_untuned(find_preset(trainer, config.environment.id, None))):
        console.print_notice(notice)
    return runs
