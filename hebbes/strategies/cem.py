"""CEM: the cross-entropy method with a diagonal Gaussian, refitted to the fittest members of each generation.

Rubinstein 1999, "The cross-entropy method for combinatorial and continuous optimization"; for policies Szita & Lörincz
2006, "Learning Tetris using the noisy cross-entropy method", Neural Computation 18, whose noise on the variance is
`extra_variance`. With weights w of the elite that sum to 1 and members x = mean + sigma z:

    mean'     = mean + sigma sum w z
    sigma'^2  = sigma^2 sum w z^2 + extra variance

The defaults are those of CEM-RL (Pourchot & Sigaud 2019, arXiv 1810.01222, eq. 1-2): the best half is the elite, its
weights fall with the logarithm of the rank, members come in antithetic pairs, and the variance is around the mean
before the step, so that a mean which keeps moving keeps its sigma. Textbook CEM has equal weights (`--elite_weights
equal`) and takes sigma^2 (sum w z)^2 off, the variance around the new mean (`--variance_around new`). Departures: extra
variance is off by default, and decays by a factor down to a floor, where CEM-RL's tends to a limit (`--extra_variance
1e-3 --extra_variance_min 1e-5`); members that tie share their weights, and those that failed have none.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.population import Population
from hebbes.contracts.strategy import Combine
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.ranges import check_ranges
from hebbes.strategies.core.samplers import SAMPLERS, check_members
from hebbes.strategies.core.schedules import Course, Rate
from hebbes.strategies.core.selection import all_tie
from hebbes.strategies.core.shaping import by_rank


@dataclass(frozen=True)
class CEMSettings:
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    popsize: int = field(default=100, metadata={"help": "perturbed members per generation, even where they are twins"})
    sigma: float = field(default=0.1, metadata={"help": "initial standard deviation of the noise on the weights"})
    elite_share: float = field(default=0.5, metadata={"help": "share of the members that are the elite, in (0, 1]"})
    elite_weights: str = field(
        default="log",
        metadata={"help": "weights within the elite; log falls with the rank", "choices": ("equal", "log")},
    )
    variance_around: str = field(
        default="old",
        metadata={"help": "the elite's variance is around the new mean or the old", "choices": ("new", "old")},
    )
    extra_variance: float = field(default=0.0, metadata={"help": "variance added in every generation, at the start"})
    extra_variance_decay: float = field(
        default=0.95, metadata={"help": "factor on it per generation, in (0, 1]", "needs": {"extra_variance": ()}}
    )
    extra_variance_min: float = field(
        default=0.0, metadata={"help": "floor of the decaying extra variance", "needs": {"extra_variance": ()}}
    )
    sampler: str = field(
        default="antithetic", metadata={"help": "how members come by their noise", "choices": tuple(SAMPLERS)}
    )

    def __post_init__(self) -> None:
        check_members("popsize", self.popsize, self.sampler)
        check_ranges(
            self,
            {
                "a finite number > 0": ("sigma",),
                "in (0, 1]": ("elite_share", "extra_variance_decay"),
                "a finite number >= 0": ("extra_variance", "extra_variance_min"),
            },
        )
        if round(self.elite_share * self.popsize) < 2:
            raise ValueError(f"elite_share must leave 2 of the {self.popsize} members at least, got {self.elite_share}")


class CEM(GaussianStrategy):
    """A Gaussian with a sigma for each parameter, fitted anew in every generation."""

    Settings: ClassVar[type[CEMSettings]] = CEMSettings

    def __init__(self, settings: CEMSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._settings = settings
        course = Course(settings.extra_variance, settings.extra_variance_min, settings.extra_variance_decay)
        self._extra_variance = Rate("exponential", course)
        super().__init__(
            initial_mean,
            np.full(len(initial_mean), settings.sigma),
            seed,
            popsize=settings.popsize,
            sampler=settings.sampler,
            parts={"extra_variance": self._extra_variance},
        )

    def tell(
        self, population: Population, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """Moves the Gaussian onto the elite; a generation in which all members tie, or failed, moves nothing."""
        weights = self._elite(fitness[:-1])
        first, agreement = self._noise_sum(population, weights, combine)
        step = self._sigma * first
        figures = self._move(step, step, agreement, fitness)
        if np.count_nonzero(weights) > 1:  # a single survivor has no spread
            second = combine(population, np.append(weights, 0.0), power=2)
            around = second - first**2 if self._settings.variance_around == "new" else second
            # rounding can take a variance that is all but zero below it
            self._sigma = np.sqrt(self._sigma**2 * np.maximum(around, 0.0) + self._extra_variance.value)
        self._extra_variance.advance()
        return figures

    def _elite(self, fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
        """Weights that sum to 1, over the elite of those that have not failed; all zero if all failed or tie."""
        if all_tie(fitness):
            return np.zeros(len(fitness))
        ranks = np.arange(1, len(fitness) + 1)
        size = round(self._settings.elite_share * len(fitness))
        falling = np.log((size + 1) / ranks) if self._settings.elite_weights == "log" else np.ones(len(fitness))
        weights = np.where(np.isnan(fitness), 0.0, by_rank(fitness, np.where(ranks <= size, falling, 0.0)))
        total = weights.sum()
        return weights / total if total > 0 else weights
