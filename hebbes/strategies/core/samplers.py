"""Samplers: the unit-variance noise of a population's directions, each a function of its own stream and little else.

A direction belongs to one member, or to two opposite ones where the sampler makes twins. Every sampler yields the noise
of the directions asked for, in that order, with the same bits whichever others are asked for; each row on its own is
distributed as a standard normal vector.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float32, Float64

ORTHOGONAL_BLOCK = 32
"""Directions made orthogonal to one another, at most: time for one and memory of a chunk grow with it."""

Streams: TypeAlias = Callable[[int], np.random.Generator]
"""The generator of a direction."""
Directions: TypeAlias = Callable[[Sequence[int], int, Streams], Iterator[Float32[np.ndarray, " params"]]]
"""Noise of the directions numbered, of so many parameters."""


def independent(ids: Sequence[int], num_params: int, streams: Streams) -> Iterator[Float32[np.ndarray, " params"]]:
    """Standard normal vectors, each drawn alone."""
    for direction in ids:
        yield streams(direction).standard_normal(num_params, dtype=np.float32)


def orthogonal(ids: Sequence[int], num_params: int, streams: Streams) -> Iterator[Float32[np.ndarray, " params"]]:
    """Vectors that are orthogonal within blocks of directions, their lengths those of standard normal vectors.

    Choromanski, Rowland, Sindhwani, Turner & Weller 2018, "Structured Evolution with Compact Architectures for
    Scalable Policy Optimization", arXiv 1804.02395: Gram-Schmidt over Gaussian rows, lengths drawn anew from the chi
    distribution. Blocks are no larger than ORTHOGONAL_BLOCK, where the paper's go up to the number of parameters.
    """
    size = min(ORTHOGONAL_BLOCK, num_params)
    units, lengths = np.empty((size, num_params)), np.empty(size)
    block, made = -1, 0
    for direction in ids:
        if direction // size != block:
            block, made = direction // size, 0
        while made <= direction % size:  # a row depends on those before it in its block, never on later ones
            rng = streams(block * size + made)
            units[made] = _orthogonal_unit(rng.standard_normal(num_params, dtype=np.float32), units[:made])
            lengths[made] = np.sqrt(rng.chisquare(num_params))
            made += 1
        yield (units[direction % size] * lengths[direction % size]).astype(np.float32)


def _orthogonal_unit(
    vector: Float32[np.ndarray, " params"], units: Float64[np.ndarray, "before params"]
) -> Float64[np.ndarray, " params"]:
    """The direction of what is left of a vector without its parts along orthonormal ones."""
    rest = vector.astype(np.float64)
    for _ in range(2):  # once leaves rounding errors where little is left
        # einsum rather than BLAS, whose last bits depend on the number of threads
        rest -= np.einsum("b,bp->p", np.einsum("bp,p->b", units, rest), units)
    return rest / np.sqrt(np.square(rest).sum())


@dataclass(frozen=True)
class Sampler:
    """How members come by their noise."""

    twins: bool
    """Whether members 2k and 2k + 1 go along and against one direction; else every member has its own."""
    directions: Directions
    block: int = 1
    """Directions, from the first on, whose noise depends on one another's; never more than there are parameters."""


SAMPLERS: dict[str, Sampler] = {
    "normal": Sampler(twins=False, directions=independent),
    "antithetic": Sampler(twins=True, directions=independent),
    "orthogonal": Sampler(twins=True, directions=orthogonal, block=ORTHOGONAL_BLOCK),
}
TWIN_SAMPLERS = tuple(name for name, sampler in SAMPLERS.items() if sampler.twins)


LOW_RANK = "low_rank"
"""Twins too, but of a population of its own kind: see `hebbes.strategies.core.low_rank`."""


def dependent_members(sampler: str, num_params: int) -> int:
    """Size of the groups of members, from the first on, between which noise is independent; of pairs at least."""
    return 2 * min(SAMPLERS[sampler].block if sampler in SAMPLERS else 1, num_params)


def check_members(option: str, number: int, sampler: str) -> None:
    """Refuses, with ValueError, a number of members that the sampler cannot make."""
    if (sampler == LOW_RANK or SAMPLERS[sampler].twins) and (number < 2 or number % 2):
        raise ValueError(f"{option} must be an even number >= 2 (antithetic pairs), got {number}")
    if number < 2:
        raise ValueError(f"{option} must be >= 2, got {number}")
