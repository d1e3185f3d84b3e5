"""Samplers: unit-variance noise along the directions of a population, each drawn from its own stream.

A direction belongs to one member, or to the two opposite members of an antithetic pair. Every sampler yields the noise
of the requested directions, in their order. The bits of a direction do not depend on which others are requested. Each
row on its own is distributed as a standard normal vector.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float32, Float64

ORTHOGONAL_BLOCK = 32
"""Largest number of mutually orthogonal directions. Time per direction and memory per chunk grow with it."""

MakeGenerator: TypeAlias = Callable[[int], np.random.Generator]
"""Makes the generator of a direction from its number."""
DrawDirections: TypeAlias = Callable[[Sequence[int], int, MakeGenerator], Iterator[Float32[np.ndarray, " params"]]]
"""Draws the noise of the directions `ids` for `num_params` parameters."""


def draw_independent(
    ids: Sequence[int], num_params: int, make_rng: MakeGenerator
) -> Iterator[Float32[np.ndarray, " params"]]:
    """Independent standard normal vectors."""
    for direction in ids:
        yield make_rng(direction).standard_normal(num_params, dtype=np.float32)


def draw_orthogonal(
    ids: Sequence[int], num_params: int, make_rng: MakeGenerator
) -> Iterator[Float32[np.ndarray, " params"]]:
    """Vectors that are orthogonal within blocks of directions, with the lengths of standard normal vectors.

    Choromanski, Rowland, Sindhwani, Turner & Weller 2018, "Structured Evolution with Compact Architectures for
    Scalable Policy Optimization", arXiv 1804.02395: Gram-Schmidt over Gaussian rows, with new lengths from the chi
    distribution. Departure: blocks have at most ORTHOGONAL_BLOCK directions. The paper's can be as large as the number
    of parameters.
    """
    size = min(ORTHOGONAL_BLOCK, num_params)
    units, lengths = np.empty((size, num_params)), np.empty(size)
    block, num_drawn = -1, 0
    for direction in ids:
        if direction // size != block:
            block, num_drawn = direction // size, 0
        while num_drawn <= direction % size:  # a row depends only on earlier rows of its block
            rng = make_rng(block * size + num_drawn)
            vector = rng.standard_normal(num_params, dtype=np.float32)
            units[num_drawn] = _make_orthogonal_unit(vector, units[:num_drawn])
            lengths[num_drawn] = np.sqrt(rng.chisquare(num_params))
            num_drawn += 1
        yield (units[direction % size] * lengths[direction % size]).astype(np.float32)


def _make_orthogonal_unit(
    vector: Float32[np.ndarray, " params"], units: Float64[np.ndarray, "before params"]
) -> Float64[np.ndarray, " params"]:
    """Unit vector along the part of `vector` that is orthogonal to the orthonormal `units`."""
    rest = vector.astype(np.float64)
    for _ in range(2):  # a single pass leaves rounding errors where little is left
        # einsum rather than BLAS, whose last bits depend on the number of threads
        rest -= np.einsum("b,bp->p", np.einsum("bp,p->b", units, rest), units)
    return rest / np.sqrt(np.square(rest).sum())


@dataclass(frozen=True)
class Sampler:
    """How the noise of the members is drawn."""

    is_mirrored: bool
    """Whether members 2k and 2k + 1 are an antithetic pair along one direction; if not, each member has its own."""
    draw: DrawDirections
    block: int = 1
    """Size of the blocks of directions whose noise is dependent; capped by the number of parameters."""


SAMPLERS: dict[str, Sampler] = {
    "normal": Sampler(is_mirrored=False, draw=draw_independent),
    "antithetic": Sampler(is_mirrored=True, draw=draw_independent),
    "orthogonal": Sampler(is_mirrored=True, draw=draw_orthogonal, block=ORTHOGONAL_BLOCK),
}
MIRRORED_SAMPLERS = tuple(name for name, sampler in SAMPLERS.items() if sampler.is_mirrored)

LOW_RANK = "low_rank"
"""Antithetic pairs with their own kind of population: see `hebbes.strategies.core.low_rank`."""


def count_dependent_members(sampler: str, num_params: int) -> int:
    """Size of the groups of consecutive members between which noise is independent; at least a pair."""
    return 2 * min(SAMPLERS[sampler].block if sampler in SAMPLERS else 1, num_params)


def check_members(option: str, number: int, sampler: str) -> None:
    """Raises ValueError, which names the option, for a number of members that the sampler cannot make."""
    if (sampler == LOW_RANK or SAMPLERS[sampler].is_mirrored) and (number < 2 or number % 2):
        raise ValueError(f"{option} must be an even number >= 2 (antithetic pairs), got {number}")
    if number < 2:
        raise ValueError(f"{option} must be >= 2, got {number}")
