"""The share of individuals that are trained by gradients, held near a target.

Lee et al. 2020, arXiv 2012.05417; equation and slope from their code, KyunghyunLee/aes-rl, algorithm/aes.py. With the
numbers of individuals of both kinds, each counted from 1, and the target r*:

    r = n_rl / (n_rl + n_es)
    P(train the next one) = clip(-50 (r - r*) + 0.5, 0, 1)

Departure: r* = 0 never trains, and r* = 1 always. Theirs refuses 0, and leaves one individual in about a hundred
untrained with r* = 1.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from hebbes.strategies.core.restoring import Restorable

SLOPE = 50


def compute_rl_probability(num_rl: int, num_es: int, target: float) -> float:
    """The probability with which the next individual is trained."""
    if target in (0, 1):
        return float(target)
    share = num_rl / (num_rl + num_es)
    return min(max(-SLOPE * (share - target) + 0.5, 0.0), 1.0)


class RLShare(Restorable):
    """Decides for each individual whether it is trained, and counts both kinds as they are dispatched."""

    STATE: ClassVar[Mapping[str, str]] = {"num_rl": "_num_rl", "num_es": "_num_es"}

    def __init__(self, target: float):
        self._target = target
        self._num_rl = self._num_es = 1

    @property
    def share(self) -> float:
        """Share of the trained ones among all so far, each kind counted from 1."""
        return self._num_rl / (self._num_rl + self._num_es)

    def draw(self, rng: np.random.Generator) -> bool:
        """Whether the next individual is trained. It always takes one number from the generator."""
        return bool(rng.random() < compute_rl_probability(self._num_rl, self._num_es, self._target))

    def count(self, is_rl: bool) -> None:
        """Counts an individual that is dispatched. Those of a warm-up with random actions are not counted."""
        if is_rl:
            self._num_rl += 1
        else:
            self._num_es += 1
