"""ARS: augmented random search. It steps along the best directions, scaled by the standard deviation of their returns.

Mania, Guy & Recht 2018, "Simple random search provides a competitive approach to reinforcement learning",
arXiv 1803.07055, algorithm 2. N is half of `population_size`, b is `top_directions`. V1 uses all directions, V1-t the
best b of them. V2 and V2-t are the same with `--observation_normalization` (linear policies in the paper). Learning
rate and sigma may follow schedules, which are constant by default.

Departures from the paper:

- The search starts at the policy's initial weights, not at zero.
- A failed member counts as the worst that finished.
- A generation in which all the returns used are equal moves nothing. The schedules advance.

As in the authors' code (modestyachts/ARS), all directions that tie with the b-th are used, and the step is divided by
their number. If the population has fewer than b directions, all are used.

V2 departs from that code in the observation normalization. Ours clips observations at 10 standard deviations, theirs
does not clip. Our standard deviation divides by n and has a lower bound. Theirs divides by n - 1 and is infinite where
it would be below 1e-7. Ours is over the observations of the mean policy too, as for all strategies, theirs over those
of the members alone.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.option import option
from hebbes.contracts.population import Population
from hebbes.contracts.search_space import Choice, LogUniform
from hebbes.contracts.strategy import Results
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.samplers import MIRRORED_SAMPLERS, check_members
from hebbes.strategies.core.schedules import SCHEDULES, ScheduledSettings
from hebbes.strategies.core.shaping import raw


@dataclass(frozen=True)
class ARSSettings(ScheduledSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    population_size: int = option(
        64, "perturbed members per generation, two per direction", range=">= 2", search=Choice((16, 32, 64, 128, 256))
    )
    top_directions: int | None = option(
        None,
        "number of directions that make the step, at most all: those with the best members, ties included "
        "(default: all)",
        range=">= 1",
    )
    learning_rate: float = option(0.02, "step size", range="> 0", search=LogUniform(0.003, 0.3))
    learning_rate_schedule: str = option(
        "constant", "schedule of the learning rate from its start to its floor", choices=tuple(SCHEDULES)
    )
    sigma: float = option(
        0.03, "standard deviation of the noise on the weights", range="> 0", search=LogUniform(0.01, 0.3)
    )
    sigma_schedule: str = option("constant", "schedule of sigma from its start to its floor", choices=tuple(SCHEDULES))
    sampler: str = option("antithetic", "how the noise of the members is drawn", choices=MIRRORED_SAMPLERS)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_members("population_size", self.population_size, self.sampler)


class ARS(GaussianStrategy):
    """A Gaussian whose mean takes steps that do not depend on the scale of the returns."""

    Settings: ClassVar[type[ARSSettings]] = ARSSettings
    has_sigma_per_parameter: ClassVar[bool] = False

    def __init__(self, settings: ARSSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._learning_rate = settings.make_learning_rate_schedule()
        self._sigma_schedule = settings.make_sigma_schedule()
        parts = {"lr": self._learning_rate, "sigma_rate": self._sigma_schedule}
        super().__init__(settings, initial_mean, seed, parts)

    def tell(self, population: Population, results: Results) -> dict[str, float]:
        """Updates the mean, then advances the schedules; returns the metrics."""
        (total,), agreement = self._sum_noise(results, self._compute_utilities(results.fitness[:-1]))
        metrics = {
            **self._move_mean(self._learning_rate.value * total, total, agreement, results),
            "learning_rate": self._learning_rate.value,
        }
        self._learning_rate.advance()
        self._sigma_schedule.advance()
        self._sigma = self._sigma_schedule.value
        return metrics

    def _compute_utilities(self, fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
        """Returns of the best directions divided by b sigma_R (line 7); zero for the other members."""
        pairs = raw(fitness).reshape(-1, 2)
        scores = pairs.max(axis=1)  # line 6: by max(r+, r-)
        order = np.argsort(-scores, kind="stable")
        last = order[: self._settings.top_directions][-1]
        best = order[: np.count_nonzero(scores >= scores[last])]  # the best b, and those that tie with the last of them
        utilities = np.zeros_like(pairs)
        if np.ptp(pairs[best]) > 0:  # rounding can make the deviation of equal returns positive
            exponent = np.frexp(np.abs(pairs[best]).max())[1]
            scaled = np.ldexp(pairs[best], -exponent)  # exact, so that no square over- or underflows
            utilities[best] = scaled / (len(best) * scaled.std())
        return utilities.ravel()
