"""Entries of an evaluation and their results. An entry is one policy in one environment with one morphology."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.ids import ATARI_NAME_OPTIONS, find_atari_game, resolve
from hebbes.environments.morphologies import identify_morphology
from hebbes.files.policy_file import SavedPolicy, read_policy_file
from hebbes.statistics.intervals import Summary, summarize


@dataclass(frozen=True)
class Entry:
    """A policy to evaluate, and its environment."""

    path: str
    """Path of the policy file, as the user gave it."""
    saved: SavedPolicy
    """Contents of the file. An intervention may have changed the policy."""
    environment: EnvironmentSpec
    """The environment, with one morphology."""
    variant: str = ""
    """Name of the intervention. "" for the intact policy."""

    @property
    def morphology(self) -> str:
        """The morphology of the environment."""
        (morphology,) = self.environment.morphologies
        return morphology

    @property
    def seen(self) -> bool:
        """Whether the policy was trained on that morphology. The path of the morphology's file does not matter."""
        return identify_morphology(self.morphology) in map(identify_morphology, self.saved.environment.morphologies)


@dataclass(frozen=True)
class EvaluationResult:
    """An entry and the result of its episodes."""

    entry: Entry
    returns: Float64[np.ndarray, "seeds episodes"]
    """Averaged over the environment's morphologies. NaN for an episode that failed."""
    faults: Mapping[str, int]
    """The number of failed episodes for each reason."""
    lost: bool = False
    """Whether the engine could not play the episodes. They have all failed then."""

    @cached_property
    def summary(self) -> Summary:
        """Statistics over the episodes."""
        return summarize(self.returns)


def load_in_environment(
    path: str | Path, environment: str | None, imports: Sequence[str]
) -> tuple[SavedPolicy, str | None]:
    """The policy of a file, in the environment of this name if one is given; and a line on the name for the user.

    `imports` names the user's packages that the file may import from. Simulator options of the file are kept if the
    environment stays the same, but not those that the name of an Atari game sets, such as `PongDeterministic-v4`.
    """
    saved = read_policy_file(path, imports)
    spec = replace(saved.environment, imports=tuple(dict.fromkeys((*saved.environment.imports, *imports))))
    if environment is None:
        return replace(saved, environment=spec), None
    named = resolve(environment, spec.imports)
    kept = dict(spec.env_kwargs) if named.environment == spec.environment else {}
    if named.environment != environment and find_atari_game(named.environment):
        kept = {name: value for name, value in kept.items() if name not in ATARI_NAME_OPTIONS}
    env_kwargs = {**kept, **named.env_kwargs}
    spec = replace(spec, environment=named.environment, env_kwargs=env_kwargs, imports=named.imports)
    return replace(saved, environment=spec), named.notice
