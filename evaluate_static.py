"""Plays episodes with the weights of a policy file and reports the statistics of their returns."""

import json
import sys
from pathlib import Path

from rollouts.workers import WorkerError
from training.command_line import one_line_errors, parse_options
from training.evaluation import EvaluateConfig, as_object, checked_environment, played_episodes, summarise
from training.policy_file import load_policy


def main() -> None:
    """Parses and checks, then plays."""
    with one_line_errors():
        config = EvaluateConfig(**parse_options(EvaluateConfig, sys.argv[1:], __doc__))
        saved = load_policy(Path(config.path_weights), config.imports)
        environment = checked_environment(config, saved)
    try:
        returns = played_episodes(config, saved, environment)
    except WorkerError as error:
        sys.exit(f"evaluation stopped: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    if config.json:
        print(json.dumps(as_object(config, environment, returns)))
    else:
        figures = summarise(returns, config.seed)
        print(f"{environment.environment} on {environment.backend}, seed {config.seed}: {figures}")


if __name__ == "__main__":  # worker processes import this file
    main()
