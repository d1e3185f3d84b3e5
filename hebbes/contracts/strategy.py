"""Strategy: a search distribution. `ask` returns a population, `tell` takes its results. Fitness is maximized."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32, Float64

from hebbes.contracts.policy import Layout
from hebbes.contracts.population import Population


class SumNoise(Protocol):
    """`NoisePopulation.weighted_noise_sums` of a population with all its members; engines share the work."""

    def __call__(
        self, utilities: Float[np.ndarray, "rows members"], powers: Sequence[int]
    ) -> Float64[np.ndarray, "rows params"]:
        """Sums over members of utility * noise**power, one for each row, with a power of 1 or 2."""


@dataclass(frozen=True)
class Results:
    """The results of a generation, members in order."""

    fitness: Float64[np.ndarray, " members"]
    """NaN for a failed member, which ranks last; never infinite."""
    mean_squared_weights: Float64[np.ndarray, " members"]
    """Mean over a member's parameters of their squares, for penalties on weights."""
    sum_noise: SumNoise
    """Sums the members' noise. All noise is drawn anew in each call, so make one call for all sums."""


class Strategy(Protocol):
    """A search distribution. It does the fitness shaping and the weight penalties, in `tell`; engines do neither."""

    grows: ClassVar[bool]
    """Whether `ask` takes a number of members other than that of the settings, and `tell` a population of that size."""

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The mean policy's parameters."""

    def ask(self, generation: int, num_members: int | None = None) -> Population:
        """The members to evaluate: as many as the settings say, then the mean policy as an additional last one.

        What is returned must not change later. Another generation is another object: workers keep what they were sent.

        A strategy that `grows` may be asked for another number of members. A larger population then begins with the
        members of a smaller one of the same generation.

        Raises:
            FloatingPointError: the distribution cannot be sampled any more; with the reason.
        """

    def tell(self, population: Population, results: Results) -> Mapping[str, float]:
        """Moves the distribution towards the fitter members, and returns metrics of the update.

        `results` has every member of `population`.
        """

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that does not follow from settings and seed, including the start if it still matters."""

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` returned; the initial mean of this instance is replaced.

        Raises ValueError or KeyError for the state of another strategy.
        """


@runtime_checkable
class TakesLayout(Protocol):
    """An addition to `Strategy`, for those whose noise may depend on the shapes of the policy's arrays."""

    def take_layout(self, layout: Layout) -> None:
        """Called once, before the first `ask`; ValueError if the layout has another number of parameters."""


@dataclass(frozen=True)
class SearchMemory:
    """An estimate, in bytes, of the memory that a search will take. The engine's sums over members are not counted.

    `benchmarks/memory.py` compares it with what runs take.
    """

    state: int
    """Kept from one generation to the next: what `state_dict` returns."""
    update: int
    """Temporary memory of `ask` and `tell`, where it is more than that of the weighted noise sums."""
    population: int
    """The description of a generation's members, which is sent to each worker process."""


@runtime_checkable
class EstimatesMemory(Protocol):
    """An addition to `Strategy`, for classes that can estimate the memory of a search."""

    @classmethod
    def memory(cls, settings: Any, num_params: int, population_size: int) -> SearchMemory:
        """The memory of a search with these numbers; `population_size` counts, not that of the settings."""
