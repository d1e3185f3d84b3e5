"""Ties, state and metrics of the strategies whose update is done by a library."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float32, Float64, Int

from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.strategy import Results
from hebbes.strategies.core.adaptive import AdaptiveSettings
from hebbes.strategies.core.restoring import Restorable
from hebbes.strategies.core.selection import all_tie, compute_tied_share, sort_best_first
from hebbes.strategies.core.spread import compute_move_metrics


def import_cmaes() -> Any:
    """The package `cmaes`. It imports scipy, which takes long and is not needed to read the settings of a strategy."""
    import cmaes

    return cmaes


class LibraryStrategy(Restorable, ABC):
    """A search distribution that a library updates from the ranking of the members. The noise is from our own streams.

    Members that tie are ranked in a random order, drawn for each generation. The library is not told of a
    generation in which all members tie, which therefore changes nothing. Failed members rank last.
    """

    Settings: ClassVar[type[AdaptiveSettings]] = AdaptiveSettings
    STATE: ClassVar[Mapping[str, str]]
    """Name in the state -> attribute of the library, for all that must be saved; "mean" is among them."""
    grows: ClassVar[bool] = False

    def __init__(self, library: Any, seed: int, population_size: int):
        self._library, self._seed, self._population_size = library, seed, population_size

    @property
    def _holder(self) -> Any:
        return self._library

    @property
    def _mean(self) -> Float64[np.ndarray, " params"]:
        return np.ravel(getattr(self._library, self.STATE["mean"]))

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The mean policy's parameters."""
        return self._mean.astype(np.float32)

    @abstractmethod
    def _compute_deviations(self) -> Float64[np.ndarray, " params"]:
        """Standard deviation of each weight."""

    def _update(
        self, population: Any, order: Int[np.ndarray, " members"], fitness: Float64[np.ndarray, " members"]
    ) -> None:
        """Tells the library the perturbed members in `order`, the best first."""
        rows = population.weights(range(self._population_size))
        self._library.tell([(rows[member], float(rank)) for rank, member in enumerate(order)])

    def _draw_tie_order(self, rng: np.random.Generator) -> Int[np.ndarray, " members"]:
        """A number for each member; members that tie are ranked by it, the lowest first."""
        return rng.permutation(self._population_size)

    def tell(self, population: Any, results: Results) -> dict[str, float]:
        """Updates the distribution; returns the metrics, with sigma as the root mean square over the weights."""
        before, deviations = self._mean.copy(), self._compute_deviations()
        perturbed = results.fitness[:-1]
        if not all_tie(perturbed):
            rng = make_generator(self._seed, Purpose.TIES, generation=population.generation)
            self._update(population, sort_best_first(perturbed, self._draw_tie_order(rng)), perturbed)
        sigma = np.sqrt(np.square(deviations).mean())
        moved = compute_move_metrics(sigma, deviations, self._mean - before, self._mean)
        return {**moved, "tied_share": compute_tied_share(perturbed)}
