"""Engine: evaluates a population. Engines differ only in where the work is done and how data get there."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Shaped

from hebbes.contracts.policy import Buffers
from hebbes.contracts.population import NoisePopulation, Population
from hebbes.contracts.randomness import Purpose


class EngineError(RuntimeError):
    """The work could not be done: a simulator cannot be made or started, or workers keep dying."""

    def __init__(self, reason: str, resume_options: str = ""):
        """`resume_options` are those without which a resume would fail again."""
        super().__init__(reason)
        self.resume_options = resume_options


class StartError(EngineError):
    """Worker processes end by themselves while they start, before they have any work."""


EPISODE_TIMEOUT = "episode_timeout"
"""Reason of failure if the episodes of a chunk took longer than the option of this name allows."""
NONFINITE_OUTPUT = "non-finite output"
"""Reason of failure if a policy's outputs are not finite, because its weights or its observations are too large."""


@dataclass(frozen=True)
class Context:
    """How to evaluate: everything that is the same for all members."""

    purpose: Purpose
    """Only TRAINING applies the training-only wrappers."""
    generation: int
    """Of training; in other evaluations a number that gives them start states of their own, such as units done."""
    episodes: tuple[int, ...]
    """Numbers of the episodes that every member plays, one after another, in each morphology of the environment."""
    members_per_seed: int | None
    """So many consecutive members share their start states. None: all members do (common random numbers)."""
    max_episode_steps: int | None
    """Largest number of env steps in an episode; None: only the environment's own limit."""
    buffers: Buffers
    observe_moments: bool = False
    """Whether to collect the moments of the observations."""
    collect_transitions: bool = False
    """Whether to collect every env step, which takes memory for each."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations of observations, for each element, in float64."""

    count: int
    mean: Float64[np.ndarray, "..."]
    squares: Float64[np.ndarray, "..."]


@dataclass(frozen=True)
class Transitions:
    """Env steps, one a row, for algorithms that learn from them."""

    observations: Shaped[np.ndarray, "steps ..."]
    actions: Shaped[np.ndarray, "steps ..."]
    """As the action head gives them, before wrappers."""
    rewards: Float[np.ndarray, " steps"]
    terminated: Bool[np.ndarray, " steps"]
    """Whether the env step led to a terminal state. The end by a time limit is not terminal."""
    next_observations: Shaped[np.ndarray, "steps ..."]

    def __len__(self) -> int:
        return len(self.rewards)

    def __getitem__(self, rows: Bool[np.ndarray, " steps"]) -> "Transitions":
        """The transitions of these rows."""
        return Transitions(**{name: array[rows] for name, array in vars(self).items()})


@dataclass(frozen=True)
class Rollouts:
    """The results of an evaluation, members in order.

    A case is one episode in one morphology. Cases are ordered by episode, then by morphology: they can be reshaped to
    (episodes, morphologies).
    """

    returns: Float64[np.ndarray, "members cases"]
    """Undiscounted. NaN where the episode failed; never infinite."""
    env_steps: Int[np.ndarray, "members cases"]
    mean_squared_weights: Float64[np.ndarray, " members"]
    """Mean over a member's parameters of their squares; NaN for a member of a chunk that failed as a whole."""
    moments: tuple[Moments | None, ...]
    """Of the observations that each member acted on; None for a member without any, and without `observe_moments`."""
    transitions: tuple[Transitions | None, ...] = ()
    """Of each member, in their order; None for a member without any, and without `collect_transitions`."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Reason, a short text -> number of episodes that failed for it. No number of workers changes the order."""
    tallies: Mapping[str, float] = field(default_factory=dict)
    """Sums over all episodes.

    `bounded_actions` counts the numbers of Box actions, `saturated_actions` those of them close to a bound.
    `policy_seconds` and `simulator_seconds` are wall time, summed over threads or workers; wrappers count as simulator.
    """

    @property
    def fitness(self) -> Float64[np.ndarray, " members"]:
        """Mean return over a member's cases; NaN for a failed member."""
        return self.returns.mean(axis=1)


class Engine(Protocol):
    """Evaluates populations. Results depend on population and context, never on the number of workers."""

    uses_processes: ClassVar[bool]
    """Whether workers are processes, which take memory of their own, and can be ended if a simulator hangs."""

    shares_memory: ClassVar[bool]
    """Whether all workers are on this machine, so that they can read its memory."""

    progress: tuple[int, int]
    """How many members of the present or last `evaluate` are done, and how many it has. Another thread may read it."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """Columns for the next row of metrics, the same in every row; empty if there is nothing to tell."""

    def evaluate(self, population: Population, context: Context, members: range | None = None) -> Rollouts:
        """The results of the given members, or of all, in their episodes; EngineError if they cannot be had."""

    def weighted_noise_sums(
        self, population: NoisePopulation, utilities: Float[np.ndarray, "rows members"], powers: Sequence[int]
    ) -> Float64[np.ndarray, "rows params"]:
        """Sums over all members of utility * noise**power, one for each row; those of parts are added pairwise."""

    def submit(self, function: Callable[..., Any], *arguments: Any, urgent: bool = False) -> int:
        """Adds a job, `function(evaluator, *arguments)`, and returns its ticket. An idle worker gets it at once.

        An urgent job goes before all that wait for a worker.

        The evaluator belongs to the worker, and keeps its simulators: `evaluator.evaluate(population, ids, context)`
        plays in them and returns the rollouts of these members. A job that computes for long without playing calls
        `evaluator.check_abandoned()` again and again, so that `close` can end it. The function can be imported by its
        name, and gives the same answer on any worker.
        """

    def share(self, value: Any) -> Any:
        """What is given to `submit` in place of an argument that many jobs have. Each machine gets it only once.

        It is only the argument itself, not a part of it, and is kept as long as the value lives.
        """

    def collect(self, tickets: Collection[int]) -> tuple[int, Any]:
        """The ticket and the answer of the first of these jobs that is done; each answer is collected once.

        Idle workers get their next jobs only in `submit` and while this waits. So an urgent job that is submitted now
        goes before all others. Any exception drops all jobs: EngineError if one has raised an exception or has lost
        too many workers.
        """

    def close(self) -> None:
        """Frees simulators and workers, quickly even after an interrupted `evaluate`. Calling it twice is harmless."""
