"""CR-FM-NES: a natural evolution strategy at linear cost. Its covariance is a diagonal plus one direction.

Nomura & Ono 2022, "Fast Moving Natural Evolution Strategy for High-Dimensional Problems", CEC, arXiv 2201.11422, as the
authors' library `crfmnes` implements it. The library samples inside its `one_iteration` from numpy's global generator.
We load a private copy of its module, give it the noise of our own random streams, and run `one_iteration` when the
fitness is known. It is told ranks, and infinity for failed members, which it treats as infeasible: they are sorted by
the length of their noise. (Its own sort does so only if NumPy leaves equal costs in their order.) It updates with its
own points in float64. The members evaluated are these points rounded to float32.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec
from math import inf, sqrt
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float32, Float64, Int

from hebbes.contracts.policy import Weights
from hebbes.contracts.strategy import SearchMemory
from hebbes.strategies.core.adaptive import AdaptiveSettings
from hebbes.strategies.core.dense import draw_noise
from hebbes.strategies.core.library_search import LibraryStrategy
from hebbes.strategies.core.spread import check_spread

LIBRARY_VECTORS, LIBRARY_ROWS = 37, 14
"""Float64 arrays of (params, 1) and of (params, members) that the library's `one_iteration` holds at once; measured."""
MIN_PARAMS = 4
"""With fewer it ends in NaN, even on a sphere (measured). With 4 it converges, although its rate c1, (d - 5) / 6 times
that of CMA-ES, is negative there too."""


@dataclass(frozen=True)
class CRFMNESSettings(AdaptiveSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    @property
    def has_pairs(self) -> bool:
        """Always true."""
        return True


@dataclass(frozen=True)
class RankOnePopulation:
    """Members center + deviations * (z + (sqrt(1 + |v|^2) - 1) v' v'.z) with v' = v / |v|; the last one is the center.

    Members 2k and 2k + 1 are an antithetic pair: their noise differs in sign only.
    """

    center: Float64[np.ndarray, " params"]
    deviations: Float64[np.ndarray, " params"]
    direction: Float64[np.ndarray, " params"]
    """v, the direction in which the noise is longer."""
    seed: int
    generation: int
    population_size: int

    def __len__(self) -> int:
        """Number of members, the mean policy included."""
        return self.population_size + 1

    def noise(self, member: int) -> Float64[np.ndarray, " params"]:
        """Standard normal noise of a perturbed member."""
        noise = draw_noise(self.seed, self.generation, [member // 2], len(self.center))[0]
        return -noise if member % 2 else noise

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members `ids`, one row each."""
        rows = np.empty((len(ids), len(self.center)), np.float32)
        squared_length = np.square(self.direction).sum()
        along = (sqrt(1 + squared_length) - 1) / squared_length * self.direction
        for row, member in zip(rows, ids, strict=True):
            row[:] = self.center
            if member < self.population_size:
                z = self.noise(member)  # not by BLAS, whose last bits depend on the number of threads
                row[:] = self.center + self.deviations * (z + (self.direction * z).sum() * along)
        return rows


class CRFMNES(LibraryStrategy):
    """A Gaussian with one standard deviation per weight and one long direction."""

    Settings: ClassVar[type[CRFMNESSettings]] = CRFMNESSettings
    STATE: ClassVar[Mapping[str, str]] = {
        **{"mean": "m", "sigma": "sigma", "direction": "v", "deviations": "D"},
        **{"covariance_path": "pc", "sigma_path": "ps"},
    }
    """Attributes of version 1.0.0."""

    @classmethod
    def memory(cls, settings: AdaptiveSettings, num_params: int, population_size: int) -> SearchMemory:
        """Memory for five float64 vectors and for the library's update."""
        update = LIBRARY_VECTORS + LIBRARY_ROWS * population_size
        return SearchMemory(8 * 5 * num_params, 8 * update * num_params, 8 * 3 * num_params)

    def __init__(self, settings: CRFMNESSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        num_params, population_size = len(initial_mean), settings.choose_population_size(len(initial_mean))
        if num_params < MIN_PARAMS:
            raise ValueError(f"strategy cr_fm_nes needs at least {MIN_PARAMS} parameters, got {num_params}")
        self._module = load_private_module()
        self._feed_noise(draw_noise(seed, 0, [population_size], num_params).T)  # its first v; no member has this stream
        mean = np.array(initial_mean, np.float64)[:, np.newaxis]
        library = self._module.CRFMNES(
            num_params, None, mean, settings.sigma, population_size, use_constraint_violation=False
        )
        super().__init__(library, seed, population_size)

    def _compute_deviations(self) -> Float64[np.ndarray, " params"]:
        library = self._library
        return library.sigma * library.D[:, 0] * np.sqrt(1 + np.square(library.v[:, 0]))

    def ask(self, generation: int, num_members: int | None = None) -> RankOnePopulation:
        """The members around the mean, the mean policy last; FloatingPointError if they no longer differ from it."""
        library = self._library
        if not (library.D > 0).all():  # NaN too
            raise FloatingPointError(
                f"cr_fm_nes at sigma {library.sigma:.3g} has lost the deviation of a weight, as its update may on a "
                "long slope; sep_cma_es does not"
            )
        check_spread(self.mean, self._compute_deviations())
        scales, direction = library.sigma * library.D[:, 0], library.v[:, 0].copy()
        return RankOnePopulation(self._mean.copy(), scales, direction, self._seed, generation, self._population_size)

    def _draw_tie_order(self, rng: np.random.Generator) -> Int[np.ndarray, " members"]:
        """Ranks the two members of an antithetic pair next to each other, so that their noise nearly cancels.

        Ranked by their signs, the members of one sign would make the whole step.
        """
        pairs, swaps = rng.permutation(self._population_size // 2), rng.integers(2, size=self._population_size // 2)
        return np.stack([2 * pairs + swaps, 2 * pairs + 1 - swaps], axis=1).ravel()

    def _update(
        self,
        population: RankOnePopulation,
        order: Int[np.ndarray, " members"],
        fitness: Float64[np.ndarray, " members"],
    ) -> None:
        ranks = np.empty(self._population_size)
        ranks[order] = np.arange(self._population_size)
        ranks[np.isnan(fitness)] = inf
        half = np.stack([population.noise(member) for member in range(0, self._population_size, 2)], axis=1)
        self._feed_noise(half)
        self._library.z = np.zeros((len(half), self._population_size))  # its memory order affects the last bits, too
        values = iter([*ranks[0::2], *ranks[1::2]])  # it asks for the opposite noise after the other
        self._library.f = lambda weights: next(values)
        self._library.one_iteration()  # `ask` reports a deviation that is lost

    def _feed_noise(self, noise: Float64[np.ndarray, "params columns"]) -> None:
        """Makes the library draw this noise next."""
        self._module.np.random = SimpleNamespace(randn=lambda *shape: noise)


def load_private_module() -> Any:
    """A copy of the library's module with its own `np`, so that the module that others import stays unchanged."""
    spec = find_spec("crfmnes.alg")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["np"] = SimpleNamespace(**vars(np))
    vars(module)["sort_indices_by"] = sort_by_cost_and_distance
    return module


def sort_by_cost_and_distance(
    costs: Float64[np.ndarray, " members"], noise: Float64[np.ndarray, "params members"]
) -> Int[np.ndarray, " members"]:
    """The members from the best on, failed ones, whose costs are infinite, by the length of their noise."""
    return np.lexsort((np.square(noise).sum(axis=0), costs))
