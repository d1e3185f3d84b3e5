"""ACEM-RL: `hebbes.hybrids.asynchronous` with the search distribution of `hebbes.hybrids.acem`.

Lee, Lee, Shin & Kweon 2020, "An Efficient Asynchronous Method for Integrating Evolutionary and Gradient-based Policy
Search", arXiv 2012.05417; code KyunghyunLee/aes-rl 5b69a06. Both modules have the equations and the departures.
"""

from dataclasses import dataclass
from typing import ClassVar

from hebbes.hybrids.acem import ACEM
from hebbes.hybrids.asynchronous import Asynchronous
from hebbes.hybrids.asynchronous_settings import AsynchronousSettings
from hebbes.hybrids.search_distribution import SearchDistribution, SearchSettings


@dataclass(frozen=True)
class ACEMRLSettings(SearchSettings, AsynchronousSettings):
    """Hyperparameters of ACEM-RL."""


class ACEMRL(Asynchronous):
    """Each individual refits the Gaussian to the best of the last ten."""

    Settings: ClassVar[type[ACEMRLSettings]] = ACEMRLSettings
    Distribution: ClassVar[type[SearchDistribution]] = ACEM
