"""AES-RL: `hebbes.hybrids.asynchronous` with the search distribution of `hebbes.hybrids.aes`.

Lee, Lee, Shin & Kweon 2020, "An Efficient Asynchronous Method for Integrating Evolutionary and Gradient-based Policy
Search", arXiv 2012.05417; code KyunghyunLee/aes-rl 5b69a06. Both modules have the equations and the departures.
"""

from dataclasses import dataclass
from typing import ClassVar

from hebbes.hybrids.aes import AES, AESSettings
from hebbes.hybrids.asynchronous import Asynchronous
from hebbes.hybrids.asynchronous_settings import AsynchronousSettings
from hebbes.hybrids.search_distribution import SearchDistribution


@dataclass(frozen=True)
class AESRLSettings(AESSettings, AsynchronousSettings):
    """Hyperparameters of AES-RL."""


class AESRL(Asynchronous):
    """Each individual moves the mean by a share, then the variance."""

    Settings: ClassVar[type[AESRLSettings]] = AESRLSettings
    Distribution: ClassVar[type[SearchDistribution]] = AES
