"""Evolves the static weights of a policy on any Gymnasium environment."""

import sys

from contracts.engine import EngineError
from training.command_line import parse_configs
from training.exit_status import one_line_errors, signals_end_cleanly, stopped
from training.loop import TrainingError
from training.preparation import prepare
from training.run import execute_all


def main() -> None:
    """Parses and checks, then trains."""
    with signals_end_cleanly():
        with one_line_errors():
            configs = parse_configs("static", sys.argv[1:], __doc__)
            runs = [run for config in configs for run in prepare(config)]
        try:
            execute_all(runs)
        except (EngineError, TrainingError) as error:
            sys.exit(stopped(error))


if __name__ == "__main__":  # worker processes import this file
    main()
