"""Plays episodes with the weights of a policy file and reports the statistics of their returns."""

import json
import sys
from pathlib import Path

from training.command_line import one_line_errors, parse_options
from training.evaluation import EvaluateConfig, as_object, checked_environment, film, play, summarise
from training.policy_file import load_policy


def main() -> None:
    """Parses and checks, then plays."""
    with one_line_errors():
        config = EvaluateConfig(**parse_options(EvaluateConfig, sys.argv[1:], __doc__))
        saved = load_policy(Path(config.path_weights), config.imports)
        environment = checked_environment(config, saved)
    returns = play(
        saved,
        environment,
        episodes=config.episodes,
        seed=config.seed,
        threads=config.threads,
        max_episode_steps=config.max_episode_steps,
        render_mode="human" if config.render else None,
    )
    if config.video is not None:
        film(saved, environment, Path(config.video), seed=config.seed, max_episode_steps=config.max_episode_steps)
    if config.json:
        print(json.dumps(as_object(config, environment, returns)))
    else:
        print(
            f"{environment.environment} on {environment.backend}, seed {config.seed}: {summarise(returns, config.seed)}"
        )


if __name__ == "__main__":  # worker processes import this file
    main()
