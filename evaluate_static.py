"""Plays episodes with the weights of a policy file and reports the statistics of their returns."""

import sys
from pathlib import Path

from reporting.console import only_results_on_stdout
from rollouts.workers import WorkerError
from training.command_line import one_line_errors, parse_options, signals_end_cleanly
from training.evaluation import EvaluateConfig, checked_environment, film, played_returns, report
from training.policy_file import load_policy


def main() -> None:
    """Parses and checks, then plays."""
    with signals_end_cleanly():
        with one_line_errors():
            config = EvaluateConfig(**parse_options(EvaluateConfig, sys.argv[1:], __doc__))
        with only_results_on_stdout() as results:
            with one_line_errors():
                saved = load_policy(Path(config.path_weights), config.imports)
                environment = checked_environment(config, saved)
            try:
                returns = played_returns(config, saved, environment)
            except WorkerError as error:
                sys.exit(f"evaluation stopped: {error}")
            print(report(config, environment, returns), file=results, flush=True)
            if config.video is not None:
                film(config, saved, environment)


if __name__ == "__main__":  # worker processes import this file
    main()
