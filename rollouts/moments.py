"""Moments of observations: gathered in blocks, merged in a fixed order, all in float64."""

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Shaped

from contracts.engine import Moments

BLOCK_BYTES = 1 << 20
"""Observations are held back until they fill this much, so that the arithmetic runs on large arrays."""

MIN_VARIANCE = 1e-6
"""Floor of the variance, so that an observation that never changes does not divide by zero."""


def merged(parts: Iterable[Moments]) -> Moments | None:
    """Moments of all parts together, in the order given (Chan, Golub & LeVeque 1983, eq. 2.1); None for no parts."""
    total = None
    for part in parts:
        if total is None:
            total = part
            continue
        count = total.count + part.count
        shift = part.mean - total.mean
        mean = total.mean + shift * (part.count / count)
        squares = total.squares + part.squares + shift**2 * (total.count * part.count / count)
        total = Moments(count, mean, squares)
    return total


STATISTICS = ("observation_mean", "observation_std", "observation_count")
"""The buffers that `standardisation` makes."""


def standardisation(moments: Moments | None, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The buffers `observation_mean`, `observation_std` (float32) and `observation_count`.

    The mean is 0 and the deviation 1 before anything was seen.
    """
    if moments is None:
        moments = Moments(0, np.zeros(shape), np.zeros(shape))
        variance = np.ones(shape)
    else:
        variance = np.maximum(moments.squares / moments.count, MIN_VARIANCE)
    return {
        "observation_mean": moments.mean.astype(np.float32),
        "observation_std": np.sqrt(variance).astype(np.float32),
        "observation_count": np.array([moments.count], np.int64),
    }


def moments_of(buffers: Mapping[str, np.ndarray]) -> Moments | None:
    """The moments that `standardisation` made these buffers from, to float32; None if they hold none."""
    count = int(buffers["observation_count"][0]) if "observation_count" in buffers else 0
    if count == 0:
        return None
    deviation = buffers["observation_std"].astype(np.float64)
    return Moments(count, buffers["observation_mean"].astype(np.float64), deviation**2 * count)


class MomentTally:
    """Gathers the moments of observations as they come."""

    def __init__(self) -> None:
        self._pending: list[np.ndarray] = []
        self._pending_bytes = 0
        self._total: Moments | None = None

    def add(self, observations: Shaped[np.ndarray, "rows ..."]) -> None:
        """Counts every row once; the array must not be changed afterwards."""
        self._pending.append(observations)
        self._pending_bytes += observations.nbytes
        if self._pending_bytes >= BLOCK_BYTES:
            self._flush()

    def result(self) -> Moments | None:
        """Moments of everything added so far; None if nothing was."""
        self._flush()
        return self._total

    def _flush(self) -> None:
        if not self._pending:
            return
        block = np.concatenate(self._pending).astype(np.float64)
        mean = block.mean(axis=0)
        moments = Moments(len(block), mean, np.square(block - mean).sum(axis=0))
        self._total = moments if self._total is None else merged([self._total, moments])
        self._pending, self._pending_bytes = [], 0
