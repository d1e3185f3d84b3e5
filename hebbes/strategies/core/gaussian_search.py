"""What the strategies that search with a mean and one sigma, or one a parameter, share: asking, state and figures."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.population import Population
from hebbes.contracts.strategy import Combine, SearchMemory
from hebbes.strategies.core.adaptive import check_spread
from hebbes.strategies.core.populations import GaussianPopulation
from hebbes.strategies.core.restoring import matching
from hebbes.strategies.core.samplers import check_members, dependent_members
from hebbes.strategies.core.selection import tied_share


class Part(Protocol):
    """What a strategy holds that changes on its own: an optimizer, a rate."""

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that changes, as named arrays."""

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""


class GaussianStrategy:
    """A Gaussian around a mean; what moves them is each strategy's own `tell`."""

    grows: ClassVar[bool] = True
    sigma_per_parameter: ClassVar[bool] = True

    @classmethod
    def memory(cls, settings: Any, num_params: int, popsize: int) -> SearchMemory:
        """Mean, sigmas and what the optimizer holds, in float64; the update is sums of noise."""
        optimizer = {"adam": 2, "sgd": 1, "clip_up": 1}.get(getattr(settings, "optimizer", ""), 0)
        vectors = 1 + cls.sigma_per_parameter + optimizer
        population = (4 + 8 * cls.sigma_per_parameter) * num_params
        return SearchMemory(8 * vectors * num_params, 0, population)

    def __init__(
        self,
        initial_mean: Float32[np.ndarray, " params"],
        sigma: float | Float64[np.ndarray, " params"],
        seed: int,
        *,
        popsize: int,
        sampler: str,
        parts: Mapping[str, Part],
    ):
        self._mean = np.array(initial_mean, np.float64)
        self._sigma = sigma
        self._seed, self._popsize, self._sampler, self._parts = seed, popsize, sampler, parts

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The unperturbed policy's parameters."""
        return self._mean.astype(np.float32)

    def ask(self, generation: int, num_members: int | None = None) -> Population:
        """Members around the mean, then the mean itself; FloatingPointError if sigma is too small, or out of bounds."""
        popsize = self._popsize if num_members is None else num_members
        check_members("num_members", popsize, self._sampler)
        check_spread(self.mean, self._sigma)
        return self._population(generation, popsize)

    def _population(self, generation: int, popsize: int) -> Population:
        return GaussianPopulation(self.mean, self._sigma, self._seed, generation, popsize, self._sampler)

    def _noise_sum(
        self, population: Population, utilities: Float64[np.ndarray, " members"], combine: Combine
    ) -> tuple[Float64[np.ndarray, " params"], float]:
        """Sum of utility times noise over the perturbed members, and how well two halves of them agree on it.

        The agreement is the cosine between the sums over every other group of members and over the rest, groups being
        the smallest whose noise does not depend on another's: about 0 where the fitness says nothing, towards 1 where
        noise drowns nothing; NaN where a half is zero, as with a single group. The second half is what the first leaves
        of the whole, so that the whole has the bits of a single sum.
        """
        weighted = np.append(utilities, 0.0)  # the unperturbed member has no noise
        groups = np.arange(len(weighted)) // dependent_members(self._sampler, len(self._mean))
        whole = combine(population, weighted)
        half = combine(population, np.where(groups % 2 == 0, weighted, 0.0))
        rest = whole - half
        lengths = np.linalg.norm(half) * np.linalg.norm(rest)
        return whole, float(half @ rest / lengths) if lengths > 0 else np.nan

    def _move(
        self,
        step: Float64[np.ndarray, " params"],
        gradient: Float64[np.ndarray, " params"],
        agreement: float,
        fitness: Float64[np.ndarray, " members"],
    ) -> dict[str, float]:
        """Adds a step to the mean; returns the figures that all these strategies have."""
        self._mean = self._mean + step
        return {
            "sigma": float(np.mean(self._sigma)),
            "update_norm": float(np.linalg.norm(step)),
            "mean_norm": float(np.linalg.norm(self._mean)),
            "update_over_sigma": float(np.sqrt(np.square(step / self._sigma).mean())),
            "tied_share": tied_share(fitness[:-1]),
            "gradient_norm": float(np.linalg.norm(gradient)),
            "gradient_agreement": agreement,
        }

    def state_dict(self) -> dict[str, np.ndarray]:
        """Mean, sigma, and what optimizer, schedules and the like hold."""
        held = [(part, holder.state_dict()) for part, holder in self._parts.items()]
        parts = {f"{part}.{name}": array for part, state in held for name, array in state.items()}
        return {"mean": self._mean, "sigma": np.array(self._sigma, np.float64), **parts}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        own = GaussianStrategy.state_dict(self)
        added = self.state_dict().keys() - own.keys()  # by a user's subclass, which restores it itself
        arrays = matching(own, {name: array for name, array in state.items() if name not in added})
        self._mean, self._sigma = arrays["mean"], arrays["sigma"][()]
        for part, holder in self._parts.items():
            holder.load_state_dict({name: arrays[f"{part}.{name}"] for name in holder.state_dict()})
