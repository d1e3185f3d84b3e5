"""What the strategies share whose update is a library's: what it is told of ties, its state, figures."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float32, Float64, Int

from hebbes.contracts.randomness import Purpose, stream
from hebbes.contracts.strategy import Combine
from hebbes.strategies.core.adaptive import AdaptiveSettings, movement
from hebbes.strategies.core.restoring import matching
from hebbes.strategies.core.selection import all_tie, best_first, tied_share


class LibraryStrategy(ABC):
    """A distribution that a library moves by the order of the members, which come from our own streams.

    Members that tie are told in an order that is drawn in every generation; a generation in which all of them tie is
    not told, and changes nothing. Failed members come last.
    """

    Settings: ClassVar[type[AdaptiveSettings]] = AdaptiveSettings
    STATE: ClassVar[Mapping[str, str]]
    """Names, "mean" among them, of the library's attributes that change between generations and matter."""
    grows: ClassVar[bool] = False

    def __init__(self, library: Any, seed: int, popsize: int):
        self._library, self._seed, self._popsize = library, seed, popsize

    @property
    def _mean(self) -> Float64[np.ndarray, " params"]:
        return np.ravel(getattr(self._library, self.STATE["mean"]))

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The unperturbed policy's parameters."""
        return self._mean.astype(np.float32)

    @abstractmethod
    def _deviations(self) -> Float64[np.ndarray, " params"]:
        """Standard deviation of each weight."""

    def _update(
        self, population: Any, order: Int[np.ndarray, " members"], fitness: Float64[np.ndarray, " members"]
    ) -> None:
        """Tells the library the perturbed members, the best first."""
        rows = population.weights(range(self._popsize))
        self._library.tell([(rows[member], float(rank)) for rank, member in enumerate(order)])

    def _tie_order(self, rng: np.random.Generator) -> Int[np.ndarray, " members"]:
        """The members' places among those that they tie with."""
        return rng.permutation(self._popsize)

    def tell(self, population: Any, fitness: Float64[np.ndarray, " members"], combine: Combine) -> dict[str, float]:
        """One update of the distribution; the sigma reported is the root mean square over the weights."""
        before, sigma = self._mean.copy(), np.sqrt(np.square(self._deviations()).mean())
        perturbed = fitness[:-1]
        if not all_tie(perturbed):
            rng = stream(self._seed, Purpose.TIES, generation=population.generation)
            self._update(population, best_first(perturbed, self._tie_order(rng)), perturbed)
        return {**movement(sigma, before, self._mean), "tied_share": tied_share(perturbed)}

    def state_dict(self) -> dict[str, np.ndarray]:
        """The attributes of STATE."""
        return {name: np.array(getattr(self._library, attribute)) for name, attribute in self.STATE.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        for name, array in matching(self.state_dict(), state).items():
            setattr(self._library, self.STATE[name], array if array.ndim else array.item())
