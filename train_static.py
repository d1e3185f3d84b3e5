"""Evolves the static weights of a policy on any Gymnasium environment."""

import sys

from rollouts.workers import WorkerError
from training.command_line import one_line_errors, parse_config, signals_end_cleanly
from training.run import execute, prepare


def main() -> None:
    """Parses and checks, then trains."""
    with signals_end_cleanly():
        with one_line_errors():
            run = prepare(parse_config("static", sys.argv[1:], __doc__))
        try:
            execute(run)
        except WorkerError as error:
            sys.exit(f"stopped, {run.folder} holds what was finished: {error}")


if __name__ == "__main__":  # worker processes import this file
    main()
