"""CEM: the cross-entropy method. It refits a diagonal Gaussian to the fittest members of each generation.

Rubinstein 1999, "The cross-entropy method for combinatorial and continuous optimization"; for policies Szita & Lörincz
2006, "Learning Tetris using the noisy cross-entropy method", Neural Computation 18. Their noise on the variance is
`extra_variance`. With weights w of the elite that sum to 1 and members x = mean + sigma z:

    mean'     = mean + sigma sum w z
    sigma'^2  = sigma^2 sum w z^2 + extra variance

The defaults are those of CEM-RL (Pourchot & Sigaud 2019, arXiv 1810.01222, eq. 1-2). The best half of the members is
the elite. Its weights fall with the logarithm of the rank. Members come in antithetic pairs. The variance is taken
around the old mean, so that sigma does not shrink while the mean keeps moving. Textbook CEM has equal weights
(`--elite_weights equal`) and the variance around the new mean (`--variance_around new`), which is smaller by
sigma^2 (sum w z)^2.

Departures from CEM-RL:

- Extra variance is off by default. `--extra_variance 9.505e-4 --extra_variance_min 1e-5 --extra_variance_schedule
  asymptotic` gives theirs, which moves from 1e-3 before its first use.
- Their code divides the sum over z^2 by the number of members in the elite: `--divide_variance` does so.
- Members that tie share their weights. Failed members have none. A single survivor moves the mean alone. If all tie or
  failed, nothing moves, but the schedule of the extra variance advances.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import check_options, option
from hebbes.contracts.population import Population
from hebbes.contracts.search_space import Choice, LogUniform, Uniform
from hebbes.contracts.strategy import Results
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.samplers import SAMPLERS, check_members
from hebbes.strategies.core.schedules import WITH_FACTOR, Schedule, ScheduleShape
from hebbes.strategies.core.shaping import compute_elite_weights


@dataclass(frozen=True)
class CEMSettings:
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    population_size: int = option(
        100,
        "perturbed members per generation; an even number if they are antithetic pairs",
        range=">= 2",
        search=Choice((16, 32, 64, 128, 256)),
    )
    sigma: float = option(
        0.1, "initial standard deviation of the noise on the weights", range="> 0", search=LogUniform(0.01, 1.0)
    )
    elite_share: float = option(
        0.5, "fraction of the members that form the elite", range="in (0, 1]", search=Uniform(0.2, 0.5)
    )
    elite_weights: str = option(
        "log", "weights within the elite: equal, or falling with the logarithm of the rank", choices=("equal", "log")
    )
    variance_around: str = option(
        "old", "whether the elite's variance is computed around the new or the old mean", choices=("new", "old")
    )
    divide_variance: bool = option(
        False, "divide the elite's variance by its number of members, before the extra variance is added"
    )
    extra_variance: float = option(
        0.0,
        "initial value of the variance that is added in every generation",
        range=">= 0",
        search=LogUniform(1e-05, 0.01),
    )
    extra_variance_schedule: str = option(
        "exponential",
        "how the extra variance falls: by a factor down to its floor, or towards it without reaching it",
        choices=WITH_FACTOR,
        needs={"extra_variance": ()},
    )
    extra_variance_decay: float = option(
        0.95,
        "factor per generation on the extra variance (exponential), or on its distance to the floor (asymptotic)",
        range="in (0, 1]",
        needs={"extra_variance": ()},
    )
    extra_variance_min: float = option(
        0.0, "floor of the decaying extra variance", range=">= 0", needs={"extra_variance": ()}
    )
    sampler: str = option("antithetic", "how the noise of the members is drawn", choices=tuple(SAMPLERS))

    def __post_init__(self) -> None:
        check_options(self)
        check_members("population_size", self.population_size, self.sampler)
        size = round(self.elite_share * self.population_size)
        if size == self.population_size and self.elite_weights == "equal":
            raise ValueError(
                f"elite_share must select fewer than all {size} members with elite_weights equal, "
                f"got {self.elite_share}"
            )
        if size < 2:
            raise ValueError(
                f"elite_share must select at least 2 of the {self.population_size} members, got {self.elite_share}"
            )


class CEM(GaussianStrategy):
    """A Gaussian with one sigma per parameter, refitted in every generation."""

    Settings: ClassVar[type[CEMSettings]] = CEMSettings

    def __init__(self, settings: CEMSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        shape = ScheduleShape(settings.extra_variance, settings.extra_variance_min, settings.extra_variance_decay)
        self._extra_variance = Schedule(settings.extra_variance_schedule, shape)
        super().__init__(settings, initial_mean, seed, {"extra_variance": self._extra_variance})

    def tell(self, population: Population, results: Results) -> dict[str, float]:
        """Fits the Gaussian to the elite and returns the metrics. A tie, or failure of all, moves nothing."""
        fitness = results.fitness[:-1]
        size = round(self._settings.elite_share * len(fitness))
        weights = compute_elite_weights(fitness, size, self._settings.elite_weights)
        (first, second), agreement = self._sum_noise(results, weights, powers=(1, 2))
        step = self._sigma * first
        metrics = self._move_mean(step, step, agreement, results)
        if np.count_nonzero(weights) > 1:  # a single member has no variance
            around = second - first**2 if self._settings.variance_around == "new" else second
            if self._settings.divide_variance:
                around = around / size
            # rounding can make a variance that is nearly zero negative
            self._sigma = np.sqrt(self._sigma**2 * np.maximum(around, 0.0) + self._extra_variance.value)
        self._extra_variance.advance()
        return metrics
