"""Evolves the static weights of a policy on any Gymnasium environment."""

import sys

from contracts.engine import EngineError
from training.command_line import parse_config
from training.exit_status import one_line_errors, signals_end_cleanly
from training.loop import TrainingError
from training.run import execute_all, prepare


def main() -> None:
    """Parses and checks, then trains."""
    with signals_end_cleanly():
        with one_line_errors():
            runs = prepare(parse_config("static", sys.argv[1:], __doc__))
        try:
            execute_all(runs)
        except (EngineError, TrainingError) as error:
            sys.exit(f"stopped: {error}")


if __name__ == "__main__":  # worker processes import this file
    main()
