"""ARS: augmented random search, steps along the best directions, scaled by the deviation of their returns.

Mania, Guy & Recht 2018, "Simple random search provides a competitive approach to reinforcement learning",
arXiv 1803.07055, algorithm 2. N is half of `popsize`, b is `top_directions`. V1 uses all directions, V1-t the best b of
them; V2 and V2-t are the same with `--observation_normalization` (linear policies in the paper). Departures: the search
starts at the policy's initial weights rather than at zero; a failed member counts as the worst that finished; a
generation in which all the returns used are equal moves nothing. Learning rate and sigma may follow schedules, constant
by default.

As in the authors' code (modestyachts/ARS), all directions that tie at the b-th are used, and the step is divided by
their number; where the population has fewer than b directions, all are used. Departures of V2 from that code, which
are those of `--observation_normalization`: observations are clipped at 10 deviations, theirs are not; the deviation
divides by n and is at least 0.001, theirs divides by n - 1 and is infinite where it would be below 1e-7.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.population import Population
from hebbes.contracts.strategy import Combine
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.samplers import TWIN_SAMPLERS, check_members
from hebbes.strategies.core.schedules import RateSettings, schedule_of
from hebbes.strategies.core.shaping import raw


@dataclass(frozen=True)
class ARSSettings(RateSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    popsize: int = field(default=64, metadata={"help": "perturbed members per generation, two a direction"})
    top_directions: int | None = field(
        default=None,
        metadata={"help": "directions that make the step, those with the best member, ties included (default: all)"},
    )
    lr: float = field(default=0.02, metadata={"help": "step size"})
    lr_schedule: str = schedule_of("the learning rate", "constant")
    sigma: float = field(default=0.03, metadata={"help": "standard deviation of the noise on the weights"})
    sigma_schedule: str = schedule_of("sigma", "constant")
    sampler: str = field(
        default="antithetic",
        metadata={"help": "how members come by their noise", "choices": TWIN_SAMPLERS},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_members("popsize", self.popsize, self.sampler)
        if self.top_directions is not None and self.top_directions < 1:
            raise ValueError(f"top_directions must be >= 1, got {self.top_directions}")


class ARS(GaussianStrategy):
    """A Gaussian whose mean takes steps of a size that the scale of the returns does not change."""

    Settings: ClassVar[type[ARSSettings]] = ARSSettings
    sigma_per_parameter: ClassVar[bool] = False

    def __init__(self, settings: ARSSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._top_directions = settings.top_directions
        self._lr, self._sigma_rate = settings.lr_rate(), settings.sigma_rate()
        super().__init__(
            initial_mean,
            settings.sigma,
            seed,
            popsize=settings.popsize,
            sampler=settings.sampler,
            parts={"lr": self._lr, "sigma_rate": self._sigma_rate},
        )

    def tell(
        self, population: Population, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """One step of the mean, then one of the schedules."""
        total, agreement = self._noise_sum(population, self._utilities(fitness[:-1]), combine)
        figures = {**self._move(self._lr.value * total, total, agreement, fitness), "lr": self._lr.value}
        self._lr.advance()
        self._sigma_rate.advance()
        self._sigma = self._sigma_rate.value
        return figures

    def _utilities(self, fitness: Float64[np.ndarray, " members"]) -> Float64[np.ndarray, " members"]:
        """Returns of the best directions over b sigma_R, line 7; zero for the other members."""
        pairs = raw(fitness).reshape(-1, 2)
        scores = pairs.max(axis=1)  # line 6: by max(r+, r-)
        order = np.argsort(-scores, kind="stable")
        last = order[: self._top_directions][-1]
        best = order[: np.count_nonzero(scores >= scores[last])]  # the b best, and those that tie with the last of them
        utilities = np.zeros_like(pairs)
        if np.ptp(pairs[best]) > 0:  # the deviation of equal returns need not be zero, but for rounding
            utilities[best] = pairs[best] / (len(best) * pairs[best].std())
        return utilities.ravel()
