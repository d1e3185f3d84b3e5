"""Entries of an evaluation and their results. An entry is one policy in one environment with one morphology."""

from dataclasses import dataclass

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.morphologies import identify_morphology
from hebbes.evaluation.play import PlayResult
from hebbes.files.policy_file import SavedPolicy


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
    played: PlayResult
    lost: bool = False
    """Whether the engine could not play the episodes. They have all failed then."""
