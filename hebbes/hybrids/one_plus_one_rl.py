"""The (1+1)-ES with RL: `hebbes.hybrids.asynchronous` with the search distribution of `hebbes.hybrids.one_plus_one`.

Lee, Lee, Shin & Kweon 2020, "An Efficient Asynchronous Method for Integrating Evolutionary and Gradient-based Policy
Search", arXiv 2012.05417; code KyunghyunLee/aes-rl 5b69a06. Both modules have the equations and the departures.
"""

from dataclasses import dataclass
from typing import ClassVar

from hebbes.hybrids.asynchronous import Asynchronous
from hebbes.hybrids.asynchronous_settings import AsynchronousSettings
from hebbes.hybrids.one_plus_one import OnePlusOne
from hebbes.hybrids.search_distribution import SearchDistribution, SearchSettings


@dataclass(frozen=True)
class OnePlusOneRLSettings(SearchSettings, AsynchronousSettings):
    """Hyperparameters of the (1+1)-ES with RL."""


class OnePlusOneRL(Asynchronous):
    """An individual takes the mean's place if its return is higher."""

    Settings: ClassVar[type[OnePlusOneRLSettings]] = OnePlusOneRLSettings
    Distribution: ClassVar[type[SearchDistribution]] = OnePlusOne
