"""A user's own classes with options, for the tests of printed commands."""

from dataclasses import dataclass, replace

from hebbes.contracts.option import option
from hebbes.policies.hebbian import Hebbian
from hebbes.wrappers.base import BatchWrapper


@dataclass(eq=False, kw_only=True)
class ScaledRewards(BatchWrapper):
    """Multiplies rewards."""

    scale: float = option(1.0, "factor of every reward")

    def step(self, actions, active):
        stepped = self.env.step(actions, active)
        return replace(stepped, rewards=stepped.rewards * self.scale)


@dataclass(frozen=True)
class SmallHebbian(Hebbian):
    """A plastic network with another default than its base."""

    hidden_sizes: tuple[int, ...] = option((6,), "units of each hidden layer", range=">= 1")
