"""`ask`, state and metrics of the strategies that search with a mean and one sigma, or one sigma per parameter."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.plain_values import prefix_arrays, select_arrays
from hebbes.contracts.population import NoisePopulation
from hebbes.contracts.strategy import Results, SearchMemory
from hebbes.strategies.core.optimizers import OPTIMIZERS
from hebbes.strategies.core.populations import GaussianPopulation
from hebbes.strategies.core.restoring import Restorable, copy_matching_arrays
from hebbes.strategies.core.samplers import check_members, count_dependent_members
from hebbes.strategies.core.selection import compute_tied_share
from hebbes.strategies.core.spread import check_spread, compute_move_metrics


class GaussianStrategy:
    """A Gaussian around a mean. Each strategy's own `tell` updates it."""

    grows: ClassVar[bool] = True
    has_sigma_per_parameter: ClassVar[bool] = True

    @classmethod
    def memory(cls, settings: Any, num_params: int, population_size: int) -> SearchMemory:
        """Memory for the mean, the sigmas and the optimizer's state in float64; the update only sums noise."""
        optimizer = OPTIMIZERS.get(getattr(settings, "optimizer", ""))
        vectors = 1 + cls.has_sigma_per_parameter + (optimizer.num_vectors if optimizer else 0)
        population = (4 + 8 * cls.has_sigma_per_parameter) * num_params
        return SearchMemory(8 * vectors * num_params, 0, population)

    def __init__(
        self, settings: Any, initial_mean: Float32[np.ndarray, " params"], seed: int, parts: Mapping[str, Restorable]
    ):
        """Takes sigma, population_size and sampler from the strategy's own settings. `parts` have a state each."""
        self._settings, self._seed, self._parts = settings, seed, parts
        self._population_size, self._sampler = settings.population_size, settings.sampler
        self._mean = np.array(initial_mean, np.float64)
        self._sigma = np.full(len(initial_mean), settings.sigma) if self.has_sigma_per_parameter else settings.sigma

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The mean policy's parameters."""
        return self._mean.astype(np.float32)

    def ask(self, generation: int, num_members: int | None = None) -> NoisePopulation:
        """The members around the mean, the mean policy last; FloatingPointError if sigma is too small or too large."""
        population_size = self._population_size if num_members is None else num_members
        check_members("num_members", population_size, self._sampler)
        check_spread(self.mean, self._sigma)
        return self._make_population(generation, population_size)

    def _make_population(self, generation: int, population_size: int) -> NoisePopulation:
        return GaussianPopulation(self.mean, self._sigma, self._seed, generation, population_size, self._sampler)

    def _sum_noise(
        self, results: Results, utilities: Float64[np.ndarray, " perturbed"], powers: tuple[int, ...] = (1,)
    ) -> tuple[Float64[np.ndarray, "powers params"], float]:
        """Sums of utility * noise**power over the perturbed members, and how well two halves agree on the first sum.

        The agreement is the cosine between the sum over every other group of members and the sum over the rest. A group
        is the smallest set of members whose noise is independent of the others'. The agreement is about 0 where the
        fitness says nothing, tends to 1 where the signal is strong, and is NaN where a half is zero, as with a single
        group.
        """
        weighted = np.append(utilities, 0.0)  # the mean policy has no noise
        groups = np.arange(len(weighted)) // count_dependent_members(self._sampler, len(self._mean))
        halves = [np.where(groups % 2 == half, weighted, 0.0) for half in (0, 1)]
        sums = results.sum_noise(np.stack([*halves, *[weighted] * (len(powers) - 1)]), (powers[0], *powers))
        lengths = np.linalg.norm(sums[0]) * np.linalg.norm(sums[1])
        agreement = float(sums[0] @ sums[1] / lengths) if lengths > 0 else np.nan
        sums[1] += sums[0]
        return sums[1:], agreement

    def _move_mean(
        self,
        step: Float64[np.ndarray, " params"],
        gradient: Float64[np.ndarray, " params"],
        agreement: float,
        results: Results,
    ) -> dict[str, float]:
        """Adds a step to the mean; returns the metrics that all these strategies have."""
        self._mean = self._mean + step
        return {
            **compute_move_metrics(float(np.mean(self._sigma)), self._sigma, step, self._mean),
            "tied_share": compute_tied_share(results.fitness[:-1]),
            "gradient_norm": float(np.linalg.norm(gradient)),
            "gradient_agreement": agreement,
        }

    def state_dict(self) -> dict[str, np.ndarray]:
        """Mean, sigma and the states of the parts, such as optimizer and schedules."""
        arrays = {"mean": self._mean, "sigma": np.array(self._sigma, np.float64)}
        for key, part in self._parts.items():
            arrays |= prefix_arrays(key, part.state_dict())
        return arrays

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` returned."""
        own = GaussianStrategy.state_dict(self)
        added = self.state_dict().keys() - own.keys()  # by a user's subclass, which restores these arrays itself
        arrays = copy_matching_arrays(own, {name: array for name, array in state.items() if name not in added})
        self._mean, self._sigma = arrays["mean"], arrays["sigma"][()]
        for key, part in self._parts.items():
            part.load_state_dict(select_arrays(key, arrays))
