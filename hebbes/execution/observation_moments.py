"""Moments of observations for their normalization: collected per member, merged in member order, in float64."""

from collections.abc import Iterable, Mapping
from math import prod

import numpy as np
from jaxtyping import Int, Shaped

from hebbes.contracts.engine import Moments
from hebbes.policies import kernels


def merge_moments(parts: Iterable[Moments | None]) -> Moments | None:
    """The moments of all parts together, merged in order (Chan, Golub & LeVeque 1983, eq. 2.1). None is skipped."""
    total = None
    for part in parts:
        if total is None or part is None:
            total = total or part
            continue
        count = total.count + part.count
        shift = part.mean - total.mean
        mean = total.mean + shift * (part.count / count)
        squares = total.squares + part.squares + shift**2 * (total.count * part.count / count)
        total = Moments(count, np.asarray(mean), np.asarray(squares))  # NumPy makes scalars of arrays of shape ()
    return total


NORMALIZATION_BUFFERS = ("observation_mean", "observation_std", "observation_count")
"""Names of the buffers that `make_normalization_buffers` makes."""


def make_normalization_buffers(
    moments: Moments | None, shape: tuple[int, ...], std_min: float
) -> dict[str, np.ndarray]:
    """The buffers `observation_mean`, `observation_std` (float32, at least `std_min`) and `observation_count`.

    Without moments, the mean is 0 and the standard deviation 1. Where an observation never changed in training, its
    difference from the mean is divided by `std_min`, and the policy sees up to 10. Salimans et al. have 0.1
    (`es_distributed/es.py`, RunningStat, of openai/evolution-strategies-starter at 7585f01).
    """
    if moments is None:
        moments = Moments(0, np.zeros(shape), np.zeros(shape))
        variance = np.ones(shape)
    else:
        variance = np.maximum(moments.squares / moments.count, std_min**2)
    return {
        "observation_mean": moments.mean.astype(np.float32),
        "observation_std": np.sqrt(variance).astype(np.float32),
        "observation_count": np.array([moments.count], np.int64),
    }


def read_moments(buffers: Mapping[str, np.ndarray]) -> Moments | None:
    """The moments from which these buffers were made, with float32 precision; None if there were none.

    Standard deviations below the lower bound of that time are read as equal to it.
    """
    count = int(buffers["observation_count"][0]) if "observation_count" in buffers else 0
    if count == 0:
        return None
    deviation = buffers["observation_std"].astype(np.float64)
    return Moments(count, buffers["observation_mean"].astype(np.float64), deviation**2 * count)


class MomentTally:
    """Collects the moments of each member's observations, one by one.

    So a member's moments do not depend on the other members of its batch.
    """

    def __init__(self, num_members: int):
        self._counts = np.zeros(num_members, np.int64)
        self._means = self._squares = np.empty((0, 0))
        self._shape: tuple[int, ...] = ()

    def add(self, members: Int[np.ndarray, " rows"], observations: Shaped[np.ndarray, "rows ..."]) -> None:
        """Adds one observation of each of these members."""
        if not self._means.size:
            self._shape = observations.shape[1:]
            self._means, self._squares = np.zeros((2, len(self._counts), prod(self._shape)))
        kernels.moments.add_observations(
            members, kernels.observations.make_rows(observations), self._counts, self._means, self._squares
        )

    def compute_moments(self) -> tuple[Moments | None, ...]:
        """The moments of each member; None for members without observations."""
        return tuple(
            Moments(int(count), self._means[member].reshape(self._shape), self._squares[member].reshape(self._shape))
            if count
            else None
            for member, count in enumerate(self._counts)
        )
