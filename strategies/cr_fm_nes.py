"""CR-FM-NES: a natural evolution strategy whose covariance is a diagonal and one direction, at linear cost.

Nomura & Ono 2022, "Fast Moving Natural Evolution Strategy for High-Dimensional Problems", CEC, arXiv 2201.11422, as the
authors' library `crfmnes` implements it. The library samples inside its `one_iteration`, from numpy's global generator:
here a copy of its module, ours alone, is handed the noise of our own streams instead, and `one_iteration` runs once the
fitness is known. It is told ranks, and infinity for failed members, which it takes as infeasible; ties rank by number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec
from math import inf, sqrt
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Float32, Float64

from contracts.policy import Weights
from contracts.strategy import Combine
from strategies.adaptive import AdaptiveSettings, check_spread, movement
from strategies.dense import standard_noise
from strategies.gaussian_search import tied_share
from strategies.restoring import matching
from strategies.selection import best_first

STATE = {
    **{"mean": "m", "sigma": "sigma", "direction": "v", "deviations": "D"},
    **{"covariance_path": "pc", "sigma_path": "ps"},
}
"""Attributes of the library's object, version 1.0.0, that change from one generation to the next and matter."""


@dataclass(frozen=True)
class CrFmNesSettings(AdaptiveSettings):
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

    @property
    def variances(self) -> Float64[np.ndarray, " params"]:
        """Of each weight."""
        return np.square(self.deviations) * (1 + np.square(self.direction))

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


class CrFmNes:
    """A Gaussian with a deviation for each weight and one long direction."""

    Settings: ClassVar[type[CrFmNesSettings]] = CrFmNesSettings
    grows: ClassVar[bool] = False

    def __init__(self, settings: CrFmNesSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        num_params = len(initial_mean)
        self._seed = seed
        self._popsize = settings.members(num_params)
        self._module = own_module()
        self._hand_out(standard_noise(seed, 0, [self._popsize], num_params).T)  # its first v; a stream of no member
        self._library = self._module.CRFMNES(
            num_params,
            None,
            np.array(initial_mean, np.float64)[:, np.newaxis],
            settings.sigma,
            self._popsize,
            use_constraint_violation=False,
        )

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The unperturbed policy's parameters."""
        return self._library.m[:, 0].astype(np.float32)

    def ask(self, generation: int, num_members: int | None = None) -> RankOnePopulation:
        """Members around the mean, then the mean itself; FloatingPointError if they no longer differ from it."""
        library = self._library
        center, deviations, direction = library.m[:, 0].copy(), library.sigma * library.D[:, 0], library.v[:, 0].copy()
        population = RankOnePopulation(center, deviations, direction, self._seed, generation, self._popsize)
        check_spread(self.mean, np.sqrt(population.variances))
        return population

    def tell(
        self, population: RankOnePopulation, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """One update of the distribution; the sigma reported is the root mean square over the weights."""
        ranks = np.empty(self._popsize)
        ranks[best_first(fitness[:-1])] = np.arange(self._popsize)
        ranks[np.isnan(fitness[:-1])] = inf
        half = np.stack([population.noise(member) for member in range(self._popsize // 2)], axis=1)
        self._hand_out(half)
        self._library.z = np.zeros((len(half), self._popsize))  # its memory order, too, decides on last bits
        values = iter(ranks)
        self._library.f = lambda weights: next(values)  # asked for one member after the other
        self._library.one_iteration()
        return {
            **movement(np.sqrt(population.variances.mean()), population.center, self._library.m[:, 0]),
            "tied_share": tied_share(fitness[:-1]),
        }

    def _hand_out(self, noise: Float64[np.ndarray, "params columns"]) -> None:
        """Lets the library's next draw be this noise."""
        self._module.np.random = SimpleNamespace(randn=lambda *shape: noise)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Mean, sigma, direction, deviations and both evolution paths."""
        return {name: np.array(getattr(self._library, attribute)) for name, attribute in STATE.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        for name, array in matching(self.state_dict(), state).items():
            setattr(self._library, STATE[name], array if array.ndim else array.item())


def own_module() -> Any:
    """The library's module, made once more, with a `np` of its own: what others import as crfmnes stays as it is."""
    spec = find_spec("crfmnes.alg")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["np"] = SimpleNamespace(**vars(np))
    return module
