"""The (1+1)-ES with RL: an individual takes the mean's place if its return is higher.

Lee, Lee, Shin & Kweon 2020, "An Efficient Asynchronous Method for Integrating Evolutionary and Gradient-based Policy
Search", arXiv 2012.05417; code KyunghyunLee/aes-rl 5b69a06.

The step size follows Rechenberg's rule of one success in five (1973, "Evolutionsstrategie") over a window, as in
their core/population.py. `hebbes.strategies.one_plus_one` has a rule without a window. Departures:

- The window slides, and the variance changes from the tenth individual on. Theirs freezes once it is full, and the
  variance changes from the eleventh on.
- If the mean policy has failed, any individual that has not takes its place. There episodes that fail have no rule.
"""

from collections.abc import Mapping
from math import isnan
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.hybrids.asynchronous import Asynchronous
from hebbes.hybrids.search_distribution import SearchDistribution, SearchSettings
from hebbes.hybrids.variance_rules import MIN_VARIANCE

WINDOW = 10
TARGET_SUCCESS_RATE = 0.2
FACTOR = 0.99
"""Factor on the variance where too few individuals succeed. Where more do, the variance is divided by it."""


class OnePlusOneDistribution(SearchDistribution):
    """A Gaussian around the best policy so far."""

    STATE: ClassVar[Mapping[str, str]] = {**SearchDistribution.STATE, "successes": "_successes"}
    own_metrics = ("mean_share", "success_rate")

    def __init__(self, settings: SearchSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        super().__init__(settings, initial_mean, seed)
        self._successes = np.full(WINDOW, np.nan)  # 1 or 0 for each of the last individuals, the latest last

    def _update(
        self, individual: Float64[np.ndarray, " params"], fitness: float, mean_fitness: float
    ) -> dict[str, float]:
        succeeds = fitness > mean_fitness or (isnan(mean_fitness) and not isnan(fitness))
        if succeeds:
            self._mean = individual
        self._successes = np.append(self._successes[1:], float(succeeds))
        rate = float(self._successes.mean())  # NaN until the window is full
        if not isnan(rate):
            variance = self._variance / FACTOR if rate > TARGET_SUCCESS_RATE else self._variance * FACTOR
            self._variance = np.maximum(variance, MIN_VARIANCE)
        return {"mean_share": float(succeeds), "success_rate": rate}


class OnePlusOneRL(Asynchronous):
    """An individual takes the mean's place if its return is higher."""

    Distribution: ClassVar[type[SearchDistribution]] = OnePlusOneDistribution
