"""AES-RL: the asynchronous evolution strategy. Each individual moves the mean by a share, then the variance.

Lee, Lee, Shin & Kweon 2020, "An Efficient Asynchronous Method for Integrating Evolutionary and Gradient-based Policy
Search", arXiv 2012.05417; code KyunghyunLee/aes-rl 5b69a06. `hebbes.hybrids.mean_rules` and
`hebbes.hybrids.variance_rules` have the equations and the departures. The default rules are those of their code and its
`config/`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.option import option
from hebbes.hybrids.asynchronous import Asynchronous
from hebbes.hybrids.asynchronous_settings import AsynchronousSettings
from hebbes.hybrids.mean_rules import MEAN_RULES, check_mean_scale, compute_mean_share
from hebbes.hybrids.search_distribution import SearchDistribution, SearchSettings
from hebbes.hybrids.variance_rules import MIN_SHARE, VARIANCE_RULES, update_variance


@dataclass(frozen=True)
class AESSettings(SearchSettings):
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    mean_rule: str = option(
        "baseline_relative",
        "how the share by which an individual moves the mean follows from its return and the mean policy's",
        choices=tuple(MEAN_RULES),
    )
    mean_scale: float | None = option(
        None,
        "scale of the mean rule, in units of the return: the difference that counts as large (fixed_*), how far the "
        "baseline lies below the mean policy's return (baseline_relative), or the baseline itself, which is negative "
        "(baseline_absolute)",
    )
    negative_ratio: float = option(
        0.0,
        "factor on negative shares, which move the mean away from an individual that is worse than it",
        range="in [0, 1]",
        needs={"mean_rule": ("fixed_linear",)},
    )
    variance_rule: str = option(
        "adaptive",
        "over how many individuals the variance averages: variance_window (fixed), or fewer the further the mean moves",
        choices=tuple(VARIANCE_RULES),
    )
    variance_window: int = option(
        10, "number of individuals over which the variance averages", range=">= 1", needs={"variance_rule": ("fixed",)}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_mean_scale(self.mean_rule, self.mean_scale)


class AES(SearchDistribution):
    """A Gaussian that each individual moves by the rules of the settings."""

    own_metrics = ("mean_share",)

    def __init__(self, settings: AESSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        super().__init__(settings, initial_mean, seed)
        self._settings = settings

    def _update(
        self, individual: Float64[np.ndarray, " params"], fitness: float, mean_fitness: float
    ) -> dict[str, float]:
        settings = self._settings
        assert settings.mean_scale is not None, "AESSettings checks it"
        share = compute_mean_share(
            settings.mean_rule, fitness, mean_fitness, settings.mean_scale, settings.negative_ratio
        )
        if share != 0:  # the weights of an individual that failed may be NaN, and so would be their product with 0
            old_mean = self._mean
            self._mean = (1 - share) * old_mean + share * individual
            if share >= MIN_SHARE:
                n = VARIANCE_RULES[settings.variance_rule](share, settings.variance_window)
                self._variance = update_variance(self._variance, individual - old_mean, individual - self._mean, n)
        return {"mean_share": share}


@dataclass(frozen=True)
class AESRLSettings(AESSettings, AsynchronousSettings):
    """Hyperparameters of AES-RL."""


class AESRL(Asynchronous):
    """Each individual moves the mean by a share, then the variance."""

    Settings: ClassVar[type[AESRLSettings]] = AESRLSettings
    Distribution: ClassVar[type[SearchDistribution]] = AES
