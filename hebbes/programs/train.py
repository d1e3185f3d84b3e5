"""The programs `train_static` and `train_hebbian`: they evolve a policy on an environment."""

import sys
from collections.abc import Sequence
from pathlib import Path

from hebbes.contracts.engine import EngineError
from hebbes.options.command_line import parse_configs
from hebbes.programs.exit_status import one_line_errors, signals_end_cleanly
from hebbes.recording.standard_output import stop_message
from hebbes.training.advice import TrainingError
from hebbes.training.config import TrainConfig
from hebbes.training.prepare import prepare
from hebbes.training.run import execute_all
from hebbes.training.runs import Runs


def train_static(description: str) -> None:
    """Evolves static weights."""
    train("static", description)


def train_hebbian(description: str) -> None:
    """Evolves learning rules."""
    train("hebbian", description)


def train(trainer: str, description: str) -> None:
    """Parses and checks, then trains; `trainer` is a name of `hebbes.training.trainers.TRAINERS`."""
    with signals_end_cleanly():
        with one_line_errors():
            runs = runs_asked_for(trainer, sys.argv[1:], description)
        try:
            all_written = execute_all(runs)
        except (EngineError, TrainingError) as error:
            sys.exit(stop_message(error))
        if not all_written:
            sys.exit(1)


def runs_asked_for(trainer: str, arguments: Sequence[str], description: str) -> Runs:
    """The runs that a command line asks for, the first of them ready; ValueError where something does not fit."""

    def options_of(folder: Path) -> TrainConfig:
        (config,) = parse_configs(trainer, [*arguments, "--resume", str(folder)], description)
        return config

    (config,) = parse_configs(trainer, arguments, description)
    return prepare(config, options_of)
