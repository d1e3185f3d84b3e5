"""Strategy: a search distribution that is asked for a population and told how it did. Fitness is maximised."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32, Float64

from hebbes.contracts.policy import Layout
from hebbes.contracts.population import Population


class Combine(Protocol):
    """`Engine.combine`, handed to `tell` so that strategies and engines need not know each other."""

    def __call__(
        self, population: Population, utilities: Float[np.ndarray, " members"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum over members of utility times noise to the power of 1 or 2."""


class Strategy(Protocol):
    """Shaping and weight penalties happen in `tell`, never in an engine."""

    grows: ClassVar[bool]
    """Whether `ask` takes a number of members other than the settings' own, and `tell` a population of it."""

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The unperturbed policy's parameters."""

    def ask(self, generation: int, num_members: int | None = None) -> Population:
        """The members to try, as many as the settings say; the last one, beside them, is the unperturbed policy.

        A strategy that `grows` may be asked for another number of them: the first members of a larger population are
        those of a smaller one of the same generation.
        FloatingPointError, with the reason, where the numbers no longer allow it.
        """

    def tell(
        self,
        population: Population,
        fitness: Float64[np.ndarray, " members"],
        combine: Combine,
    ) -> Mapping[str, float]:
        """Moves the distribution towards the fitter members; returns figures for the metrics.

        `fitness` covers every member of `population`, NaN for a failed one, which ranks last; it is never infinite.
        """

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that the settings and the seed do not say, the start included where it still matters."""

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned, whatever mean this one was made with.

        ValueError or KeyError for the state of another strategy.
        """


@runtime_checkable
class TakesLayout(Protocol):
    """What a strategy is, beside `Strategy`, whose noise may depend on the shapes of the policy's arrays."""

    def take_layout(self, layout: Layout) -> None:
        """Called once, before the first `ask`; ValueError if the layout is of another number of parameters."""


@dataclass(frozen=True)
class SearchMemory:
    """Bytes that a search takes, known before it is made; sums over members are the engine's, and not counted here.

    `benchmarks/memory.py` compares them with what runs take.
    """

    state: int
    """What it keeps from one generation to the next, as `state_dict` names it."""
    update: int
    """What `ask` and `tell` take for a while, where that is more than the sums of noise do."""
    population: int
    """What describes a generation's members, and is sent to each worker process."""


@runtime_checkable
class SaysMemory(Protocol):
    """What a strategy's class is, beside `Strategy`, that can say what a search would cost in memory."""

    @classmethod
    def memory(cls, settings: Any, num_params: int, popsize: int) -> SearchMemory:
        """The cost of a search over so many parameters with so many members, whatever popsize the settings have."""
