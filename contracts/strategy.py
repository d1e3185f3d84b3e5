"""Strategy: a search distribution that is asked for a population and told how it did. Fitness is maximised."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import numpy as np
from jaxtyping import Float, Float32, Float64

from contracts.population import Population

Combine: TypeAlias = Callable[[Population, Float[np.ndarray, " members"]], Float64[np.ndarray, " params"]]
"""`Engine.combine`, handed to `tell` so that strategies and engines need not know each other."""


class Strategy(Protocol):
    """Shaping and weight penalties happen in `tell`, never in an engine."""

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The unperturbed policy's parameters."""

    def ask(self, generation: int) -> Population:
        """The members to try; the last one is the unperturbed policy.

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
