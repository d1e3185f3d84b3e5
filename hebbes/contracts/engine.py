"""Engine: evaluates a population; engines differ in transport only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from jaxtyping import Float, Float64, Int

from hebbes.contracts.policy import Buffers
from hebbes.contracts.population import Population
from hebbes.contracts.randomness import Purpose


class EngineError(RuntimeError):
    """The work could not be done: a simulator cannot be made or begun, or workers keep dying."""


@dataclass(frozen=True)
class Context:
    """How to evaluate: everything that is the same for all members."""

    purpose: Purpose
    """TRAINING applies the training-only wrappers, the others do not."""
    generation: int
    episodes: tuple[int, ...]
    """Numbers of the episodes that every member meets, one after another, and in each body of the environment."""
    independent_seeds: bool
    """False: all members meet the same start states. True: each member has its own."""
    max_episode_steps: int | None
    """Cap on the env steps of an episode; None leaves the environment's own limit alone."""
    buffers: Buffers
    observe: bool
    """Whether to gather the moments of the observations."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations of observations, element by element, in float64."""

    count: int
    mean: Float64[np.ndarray, "..."]
    squares: Float64[np.ndarray, "..."]


@dataclass(frozen=True)
class Rollouts:
    """What an evaluation found, members in order.

    A case is an episode in a body. Cases are ordered by episode, then by body, and reshape to (episodes, bodies).
    """

    returns: Float64[np.ndarray, "members cases"]
    """Undiscounted; NaN where the episode failed, never infinite."""
    env_steps: Int[np.ndarray, "members cases"]
    moments: tuple[Moments | None, ...]
    """Of the observations that each member acted on; None for a member without any, and for all unless asked for."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """How many episodes failed for each reason, a short text; in an order that no number of workers changes."""
    tallies: Mapping[str, float] = field(default_factory=dict)
    """Sums over all episodes: of `saturated_actions` among the `bounded_actions` (numbers of Box actions), and of the
    `policy_seconds` and `simulator_seconds` of wall time that threads or workers spent, wrappers among the latter."""

    @property
    def fitness(self) -> Float64[np.ndarray, " members"]:
        """Mean return over a member's cases; NaN for a failed member."""
        return self.returns.mean(axis=1)


class Engine(Protocol):
    """Results depend on the population, the context and the chunk size, never on the number of workers."""

    def evaluate(self, population: Population, context: Context, members: range | None = None) -> Rollouts:
        """Lets the members named, or all, act in their episodes; EngineError where that cannot be done."""

    def combine(
        self, population: Population, utilities: Float[np.ndarray, " members"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum over members of utility times noise to the power, made where the noise is, added in chunk order."""

    def close(self) -> None:
        """Frees simulators and workers, soon even when an `evaluate` was interrupted; calling it twice is harmless."""
