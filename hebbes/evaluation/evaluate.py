"""Evaluation: the returns of a policy file's episodes, with the numbers that `evaluate_static.py` reports."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from hebbes.contracts.errors import convert_foreign_exits
from hebbes.contracts.option import check_argument
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.trial import find_spaces
from hebbes.evaluation.arguments import MAX_EPISODES, check_imports, name_file_in_errors
from hebbes.evaluation.entries import load_in_environment
from hebbes.evaluation.episode_cap import advise_episode_cap, find_longest_episode
from hebbes.evaluation.interventions import INTERVENTIONS, intervene
from hebbes.evaluation.play import make_evaluation_spec, play
from hebbes.execution.engine_options import resolve_num_threads
from hebbes.files.policy_file import SavedPolicy, check_fits
from hebbes.files.weight_file import as_path, wrap_file_errors
from hebbes.statistics.intervals import Summary, summarize


@dataclass(frozen=True)
class Evaluation:
    """The episodes of one policy. Printed, it is one line.

    Examples:
        >>> import hebbes
        >>> found = hebbes.evaluate("cartpole.dat", episodes=3, max_episode_steps=50, threads=1)
        >>> found.returns, found.env_steps
        (array([50., 50., 50.]), array([50, 50, 50]))
        >>> found.mean, found.interval
        (50.0, (50.0, 50.0))
    """

    returns: Float64[np.ndarray, " episodes"]
    """The return of each episode, averaged over the environment's morphologies. NaN if it failed."""
    env_steps: Int[np.ndarray, " episodes"]
    """Env steps of each episode, summed over the environment's morphologies."""
    faults: Mapping[str, int]
    """Why episodes failed -> how many."""

    @cached_property
    def summary(self) -> Summary:
        """Mean, interquartile mean and median with intervals, spread and extremes."""
        return summarize(self.returns)

    @property
    def mean(self) -> float:
        """The mean return; NaN if an episode failed."""
        return self.summary.mean.value

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean, from the bootstrap over episodes. NaN for a single one.

        It shows only the noise of the evaluation.
        """
        return self.summary.mean.low, self.summary.mean.high

    def __str__(self) -> str:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in self.faults.items())
        return f"{self.summary}{': ' * bool(reasons)}{reasons}"


def evaluate(
    path: str | Path,
    *,
    episodes: int = 20,
    seed: int = 0,
    environment: str | None = None,
    backend: str | None = None,
    threads: int = -1,
    max_episode_steps: int | None = None,
    imports: Sequence[str] = (),
    intervention: tuple[str, int | float | str] | None = None,
) -> Evaluation:
    """The returns of a policy file's episodes, as `evaluate_static.py` plays them: the same numbers.

    Args:
        path: the policy file, or "zoo:NAME" for a released one.
        episodes: how many to play, a million at most.
        seed: of the start states; episode k depends only on the seed and k.
        environment: another environment than the one in the file, by its id.
        backend: "auto", "gymnasium" or "envpool". By default Gymnasium, and EnvPool for what only EnvPool has.
        threads: threads or worker processes; -1 means all cores. Worker processes import the main script, which needs
            `if __name__ == "__main__":` then. With 1 there are none.
        max_episode_steps: cap on the env steps of an episode; by default the environment's, or that of training.
        imports: packages of your own that the file may name.
        intervention: a flag of `evaluate_hebbian.py` that changes the episodes of a plastic policy, and its value:
            ("freeze_at", env_step), ("reset_weights_at", env_step), ("lesion", fraction) or ("init_weights", kind).

    Raises:
        ValueError: an argument or the file cannot be used, or no episode can be played. Failed ones return NaN.
        TypeError: the path is neither a str nor a Path.

    Examples:
        >>> import hebbes
        >>> print(hebbes.evaluate("cartpole.dat", episodes=20, seed=0, threads=1))
        mean 500 [500, 500], IQM 500 [500, 500], median 500 [500, 500], std 0.00, min 500, max 500 over 20 episodes
    """
    episodes = check_argument("episodes", episodes, int, range=f"in [1, {MAX_EPISODES}]")
    seed = check_argument("seed", seed, int, range=">= 0")
    threads = resolve_num_threads(check_argument("threads", threads, int))
    max_episode_steps = check_argument("max_episode_steps", max_episode_steps, int | None, range=">= 1")
    allowed, path, intervention = check_imports(imports), as_path(path), _check_intervention(intervention)
    with name_file_in_errors(path):
        saved, spec, notice = _load_and_check(path, environment, backend, allowed)
        if intervention is not None:
            last = find_longest_episode(saved, spec, max_episode_steps)
            saved = replace(saved, policy=intervene(saved.policy, *intervention, last))
        for line in filter(None, (notice, advise_episode_cap(saved, spec, max_episode_steps))):
            warnings.warn(line, stacklevel=2)
        played = play(saved, spec, episodes=episodes, seed=seed, threads=threads, max_episode_steps=max_episode_steps)
    return Evaluation(played.fitness, played.env_steps.sum(axis=1), played.faults)


def _check_intervention(intervention: Any) -> tuple[str, Any] | None:
    if intervention is None:
        return None
    if not isinstance(intervention, tuple | list) or len(intervention) != 2:
        raise ValueError(f"intervention must be a name and a value, such as ('lesion', 0.5), got {intervention!r}")
    return check_argument("intervention", intervention[0], str, choices=tuple(INTERVENTIONS)), intervention[1]


@convert_foreign_exits()
def _load_and_check(
    path: Path, environment: str | None, backend: str | None, imports: Sequence[str]
) -> tuple[SavedPolicy, EnvironmentSpec, str | None]:
    """The policy, the environment to play in, and a line on the environment's name.

    ValueError if the environment cannot be made and started in each morphology, or the policy does not fit it.
    """
    environment = check_argument("environment", environment, str | None)
    saved, notice = load_in_environment(path, environment, imports)
    spec = make_evaluation_spec(saved.environment, backend=backend)
    with wrap_file_errors(path):
        check_fits(path, saved, *find_spaces(spec))
    return saved, spec, notice
