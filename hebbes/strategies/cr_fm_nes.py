"""CR-FM-NES: a natural evolution strategy whose covariance is a diagonal and one direction, at linear cost.

Nomura & Ono 2022, "Fast Moving Natural Evolution Strategy for High-Dimensional Problems", CEC, arXiv 2201.11422, as the
authors' library `crfmnes` implements it. The library samples inside its `one_iteration`, from numpy's global generator:
here a copy of its module, ours alone, is handed the noise of our own streams instead, and `one_iteration` runs once the
fitness is known. It is told ranks, and infinity for failed members, which it takes as infeasible. It moves by its own
points in float64, while the members evaluated are these points rounded to float32.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec
from math import inf, sqrt
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Float32, Float64, Int

from hebbes.contracts.policy import Weights
from hebbes.contracts.strategy import SearchMemory
from hebbes.strategies.core.adaptive import AdaptiveSettings, check_spread
from hebbes.strategies.core.dense import standard_noise
from hebbes.strategies.core.library_search import LibraryStrategy

LIBRARY_VECTORS, LIBRARY_ROWS = 37, 14
"""Arrays of float64 in the library's `one_iteration`, (params, 1) and (params, members), at the same time; measured."""


@dataclass(frozen=True)
class CRFMNESSettings(AdaptiveSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.popsize is not None and self.popsize % 2:
            raise ValueError(f"popsize must be an even number >= 4 (antithetic pairs), got {self.popsize}")

    def members(self, num_params: int) -> int:
        """Members per generation: as set, or the default made even."""
        return super().members(num_params) + super().members(num_params) % 2


@dataclass(frozen=True)
class RankOnePopulation:
    """Members center + deviations * (z + (sqrt(1 + |v|^2) - 1) v' v'.z) with v' = v / |v|, then the centre itself.

    The second half of the perturbed members has the noise of the first half with the opposite sign.
    """

    center: Float64[np.ndarray, " params"]
    deviations: Float64[np.ndarray, " params"]
    direction: Float64[np.ndarray, " params"]
    """v, along which the noise is longer."""
    seed: int
    generation: int
    popsize: int

    def __len__(self) -> int:
        """The perturbed members and the unperturbed one."""
        return self.popsize + 1

    def noise(self, member: int) -> Float64[np.ndarray, " params"]:
        """Standard normal noise of one of the perturbed members."""
        half = self.popsize // 2
        drawn = standard_noise(self.seed, self.generation, [member % half], len(self.center))[0]
        return drawn if member < half else -drawn

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members named, one row each."""
        rows = np.empty((len(ids), len(self.center)), np.float32)
        squared_length = np.square(self.direction).sum()
        along = (sqrt(1 + squared_length) - 1) / squared_length * self.direction
        for row, member in zip(rows, ids, strict=True):
            row[:] = self.center
            if member < self.popsize:
                z = self.noise(member)  # the product is no BLAS call, whose last bits depend on the number of threads
                row[:] = self.center + self.deviations * (z + (self.direction * z).sum() * along)
        return rows

    def combine(
        self, ids: Sequence[int], utilities: Float[np.ndarray, " ids"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum of utility times noise to the power; the unperturbed member has none."""
        total = np.zeros(len(self.center))
        for member, utility in zip(ids, utilities, strict=True):
            if member < self.popsize and utility != 0:
                total += utility * self.noise(member) ** power
        return total


class CRFMNES(LibraryStrategy):
    """A Gaussian with a deviation for each weight and one long direction."""

    Settings: ClassVar[type[CRFMNESSettings]] = CRFMNESSettings
    STATE: ClassVar[Mapping[str, str]] = {
        **{"mean": "m", "sigma": "sigma", "direction": "v", "deviations": "D"},
        **{"covariance_path": "pc", "sigma_path": "ps"},
    }
    """Of version 1.0.0."""

    @classmethod
    def memory(cls, settings: AdaptiveSettings, num_params: int, popsize: int) -> SearchMemory:
        """Five vectors of float64 and what the library's update takes."""
        update = LIBRARY_VECTORS + LIBRARY_ROWS * popsize
        return SearchMemory(8 * 5 * num_params, 8 * update * num_params, 8 * 3 * num_params)

    def __init__(self, settings: CRFMNESSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        num_params, popsize = len(initial_mean), settings.members(len(initial_mean))
        self._module = own_module()
        self._hand_out(standard_noise(seed, 0, [popsize], num_params).T)  # its first v; a stream of no member
        mean = np.array(initial_mean, np.float64)[:, np.newaxis]
        library = self._module.CRFMNES(num_params, None, mean, settings.sigma, popsize, use_constraint_violation=False)
        super().__init__(library, seed, popsize)

    def _deviations(self) -> Float64[np.ndarray, " params"]:
        library = self._library
        return library.sigma * library.D[:, 0] * np.sqrt(1 + np.square(library.v[:, 0]))

    def ask(self, generation: int, num_members: int | None = None) -> RankOnePopulation:
        """Members around the mean, then the mean itself; FloatingPointError if they no longer differ from it."""
        check_spread(self.mean, self._deviations())
        library = self._library
        scales, direction = library.sigma * library.D[:, 0], library.v[:, 0].copy()
        return RankOnePopulation(self._mean.copy(), scales, direction, self._seed, generation, self._popsize)

    def _tie_order(self, rng: np.random.Generator) -> Int[np.ndarray, " members"]:
        """Twins are neighbours, their noise all but cancels; by number the first half's would make the whole step."""
        pairs, turned = rng.permutation(self._popsize // 2), rng.integers(2, size=self._popsize // 2)
        return np.concatenate([2 * pairs + turned, 2 * pairs + 1 - turned])

    def _update(
        self,
        population: RankOnePopulation,
        order: Int[np.ndarray, " members"],
        fitness: Float64[np.ndarray, " members"],
    ) -> None:
        ranks = np.empty(self._popsize)
        ranks[order] = np.arange(self._popsize)
        ranks[np.isnan(fitness)] = inf
        half = np.stack([population.noise(member) for member in range(self._popsize // 2)], axis=1)
        self._hand_out(half)
        self._library.z = np.zeros((len(half), self._popsize))  # its memory order, too, decides on last bits
        values = iter(ranks)
        self._library.f = lambda weights: next(values)  # asked for one member after the other
        self._library.one_iteration()

    def _hand_out(self, noise: Float64[np.ndarray, "params columns"]) -> None:
        """Lets the library's next draw be this noise."""
        self._module.np.random = SimpleNamespace(randn=lambda *shape: noise)


def own_module() -> Any:
    """The library's module, made once more, with a `np` of its own: what others import as crfmnes stays as it is."""
    spec = find_spec("crfmnes.alg")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["np"] = SimpleNamespace(**vars(np))
    return module
