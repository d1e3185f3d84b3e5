"""What an evaluation plays, and what came of it: one policy, in one environment, on one morphology."""

from dataclasses import dataclass

from hebbes.environments.morphologies import identity
from hebbes.environments.spec import EnvironmentSpec
from hebbes.evaluation.play import Played
from hebbes.files.policy_file import SavedPolicy


@dataclass(frozen=True)
class Entry:
    """A policy to evaluate, and where."""

    path: str
    """As the user gave it."""
    saved: SavedPolicy
    """What the file holds, its policy perhaps changed by an intervention."""
    environment: EnvironmentSpec
    """Of one body."""
    variant: str = ""
    """What intervenes in the policy's life; "" for the intact one."""

    @property
    def body(self) -> str:
        """The body that it acts with."""
        (body,) = self.environment.bodies
        return body

    @property
    def seen(self) -> bool:
        """Whether it was trained on that body, in whatever file that lies."""
        return identity(self.body) in map(identity, self.saved.environment.bodies)


@dataclass(frozen=True)
class Evaluated:
    """A policy and what its episodes brought."""

    entry: Entry
    played: Played
    lost: bool = False
    """Whether the engine could not play them; they have all failed then."""
