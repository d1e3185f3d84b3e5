"""Weighted noise sums over parts of a population, added as a fixed tree: ((0 + 1) + (2 + 3)) + ...

Parts and tree depend on the number of members alone. So do the last bits of a sum, whoever computes it and when.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float64

from hebbes.contracts.population import NoisePopulation

PART_SIZE = 32
"""Members of a part, approximately."""

GROUPS_PER_THREAD = 16
"""Largest number of groups of parts for each thread. More share the work more evenly, and move more arrays."""

MAX_GROUPS = 64
"""Largest number of groups. Each one sends an array as large as the parameters, which one process adds: with more, that
would take longer than drawing the noise."""


class PairwiseSum:
    """Adds arrays 0..count-1 as a tree, in whatever order they arrive.

    Neighbors are added as soon as both are there. So few arrays are kept: if they arrive in their order, one for each
    level of the tree.
    """

    def __init__(self, count: int):
        self._count = count
        self._waiting: dict[tuple[int, int], Float64[np.ndarray, "rows params"]] = {}
        """(number of nodes on a level of the tree, node on that level) -> sum of all arrays below the node."""

    def add(self, number: int, array: Float64[np.ndarray, "rows params"]) -> None:
        """Adds array `number`, which now belongs to this sum."""
        node, num_nodes = number, self._count
        while num_nodes > 1:
            neighbor = node ^ 1
            if neighbor < num_nodes:  # the last node of a level may have none
                other = self._waiting.pop((num_nodes, neighbor), None)
                if other is None:
                    self._waiting[num_nodes, node] = array
                    return
                array += other
            node, num_nodes = node // 2, (num_nodes + 1) // 2
        self._waiting[1, 0] = array

    @property
    def total(self) -> Float64[np.ndarray, "rows params"]:
        """The sum, once all arrays are added."""
        return self._waiting[1, 0]


def group_parts(parts: Sequence[range], num_threads: int) -> list[Sequence[range]]:
    """The parts in groups that are subtrees of their sum: each has a power of two of them, the last one maybe fewer.

    The sum over the groups has the same bits for every number of threads.
    """
    size = _choose_group_size(len(parts), num_threads)
    return [parts[start : start + size] for start in range(0, len(parts), size)]


def _choose_group_size(num_parts: int, num_threads: int) -> int:
    size = 1
    while num_parts > min(MAX_GROUPS, GROUPS_PER_THREAD * num_threads) * size:
        size *= 2
    return size


def count_kept_arrays(num_parts: int, num_threads: int) -> int:
    """Arrays in memory at a time: the levels of each thread's subtree, its last sum, and sums that wait for others."""
    size = _choose_group_size(num_parts, num_threads)
    return num_threads * (size.bit_length() + 1) + (num_parts // size).bit_length()


def sum_noise_of_parts(
    population: NoisePopulation,
    parts: Sequence[range],
    utilities: Float[np.ndarray, "rows members"],
    powers: Sequence[int],
) -> Float64[np.ndarray, "rows params"]:
    """The weighted noise sums over the members of a group of parts, one for each row of utilities."""
    sums = PairwiseSum(len(parts))
    for number, ids in enumerate(parts):
        sums.add(number, population.weighted_noise_sums(ids, utilities[:, ids.start : ids.stop], powers))
    return sums.total
