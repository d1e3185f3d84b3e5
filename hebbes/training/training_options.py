"""TrainingOptions: how long a run trains, and how its policy is evaluated meanwhile, whatever the trainer is."""

from dataclasses import dataclass

from hebbes.contracts.option import check_options, option
from hebbes.evaluation.arguments import MAX_EPISODES


@dataclass(frozen=True)
class TrainingOptions:
    """Options that `hebbes.training.lifecycle` reads, and every trainer has."""

    max_env_steps: int | None = option(
        None, "stop once this many env steps of training are done", range=">= 1", changeable=True
    )
    stop_at_return: float | None = option(
        None, "stop after the evaluation of the mean policy that reaches this mean return", changeable=True
    )
    max_episode_steps: int | None = option(
        None, "cap on the env steps of a training episode (default: the environment's)", range=">= 1"
    )
    eval_every: int = option(
        10,
        "generations, or env steps of hybrids, between evaluations of the mean policy on fresh episodes",
        range=">= 1",
    )
    eval_episodes: int = option(
        5,
        "fresh episodes of such an evaluation; best.dat is the policy with the best mean",
        range=f"in [1, {MAX_EPISODES}]",
    )

    def __post_init__(self) -> None:
        check_options(self)
