"""Lineages: members described by the mutations that lead to them, each of which is two numbers that seed its noise.

Such et al. 2017, "Deep Neuroevolution", arXiv 1712.06567, sec. 3.1. Theirs grow for ever; ours are compacted, so that
making a parent costs a bounded number of mutations. Sums are float32, one mutation after the other, so that a lineage
gives the same bits whether it is compacted or not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64, Int

from hebbes.contracts.policy import Weights
from hebbes.contracts.randomness import Purpose, stream
from hebbes.strategies.core.restoring import matching

MAX_MUTATIONS = 8
"""Mutations of a parent that are replayed at most; more make it a base of its own."""


def mutation(seed: int, generation: int, member: int, num_params: int) -> Float32[np.ndarray, " params"]:
    """Standard normal noise by which a member of a generation differs from its parent."""
    rng = stream(seed, Purpose.NOISE, generation=generation, member=member)
    return rng.standard_normal(num_params, dtype=np.float32)


@dataclass(frozen=True)
class ParentLineages:
    """The parents of a generation: each is a base and the mutations since."""

    bases: Float32[np.ndarray, "bases params"]
    base_ids: Int[np.ndarray, " parents"]
    mutations: tuple[tuple[tuple[int, int], ...], ...]
    """Of each parent, oldest first: generation and member."""
    seed: int
    sigma: float

    def __len__(self) -> int:
        """Number of parents."""
        return len(self.base_ids)

    def row(self, parent: int) -> Float32[np.ndarray, " params"]:
        """Parameters of a parent."""
        row = self.bases[self.base_ids[parent]].copy()
        for generation, member in self.mutations[parent]:
            row += np.float32(self.sigma) * mutation(self.seed, generation, member, len(row))
        return row

    def select(self, parents: Sequence[int], mutations: Sequence[tuple[tuple[int, int], ...]]) -> "ParentLineages":
        """Some of the parents, one or several times, each with further mutations; bases without heirs are dropped."""
        base_ids, bases = np.unique(self.base_ids[list(parents)], return_inverse=True)
        grown = tuple(self.mutations[parent] + more for parent, more in zip(parents, mutations, strict=True))
        chosen = ParentLineages(self.bases[base_ids], bases, grown, self.seed, self.sigma)
        return chosen if max(map(len, grown)) <= MAX_MUTATIONS else chosen.compacted()

    def compacted(self) -> "ParentLineages":
        """The same parents, each as a base without mutations."""
        rows = np.stack([self.row(parent) for parent in range(len(self))])
        return ParentLineages(rows, np.arange(len(self)), ((),) * len(self), self.seed, self.sigma)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Bases, base of each parent, and all mutations in one table with the number of each parent's."""
        table = [step for steps in self.mutations for step in steps]
        return {
            "bases": self.bases.copy(),
            "base_ids": self.base_ids.astype(np.int64),
            "mutations": np.array(table, np.int64).reshape(-1, 2),
            "num_mutations": np.array([len(steps) for steps in self.mutations], np.int64),
        }

    def restored(self, state: Mapping[str, np.ndarray]) -> "ParentLineages":
        """The parents of a `state_dict`; KeyError or ValueError for anything else."""
        template = {
            name: np.broadcast_to(np.zeros((), own.dtype), (len(np.atleast_1d(state[name])), *own.shape[1:]))
            for name, own in self.state_dict().items()  # how many rows there may be is checked below
        }
        bases, base_ids, table, counts = matching(template, state).values()
        fits = len(base_ids) == len(counts) > 0 and 0 <= counts.min() <= counts.max() <= len(table) == counts.sum()
        if not fits or not 0 <= base_ids.min() <= base_ids.max() < len(bases) or table.min(initial=0) < 0:
            raise ValueError("bases, base_ids, mutations and num_mutations do not belong together, or are negative")
        steps = iter([(int(generation), int(member)) for generation, member in table])
        mutations = tuple(tuple(next(steps) for _ in range(count)) for count in counts)
        return ParentLineages(bases, base_ids, mutations, self.seed, self.sigma)


@dataclass(frozen=True)
class LineagePopulation:
    """Children, each one mutation away from its parent, then the first parent itself, which is unperturbed."""

    parents: ParentLineages
    parent_of: Int[np.ndarray, " popsize"]
    generation: int

    def __len__(self) -> int:
        """The children and the unperturbed member."""
        return len(self.parent_of) + 1

    def _mutation(self, member: int) -> Float32[np.ndarray, " params"]:
        return mutation(self.parents.seed, self.generation, member, self.parents.bases.shape[1])

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members named, one row each; a parent of several is made once."""
        rows = np.empty((len(ids), self.parents.bases.shape[1]), np.float32)
        made: dict[int, Float32[np.ndarray, " params"]] = {}
        for row, member in zip(rows, ids, strict=True):
            is_child = member < len(self.parent_of)
            parent = int(self.parent_of[member]) if is_child else 0
            if parent not in made:
                made[parent] = self.parents.row(parent)
            row[:] = made[parent]
            if is_child:
                row += np.float32(self.parents.sigma) * self._mutation(member)
        return rows

    def combine(
        self, ids: Sequence[int], utilities: Float[np.ndarray, " ids"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum of utility times the last mutation to the power; the unperturbed member has none."""
        total = np.zeros(self.parents.bases.shape[1])
        for member, utility in zip(ids, utilities, strict=True):
            if member < len(self.parent_of) and utility != 0:
                total += utility * self._mutation(member).astype(np.float64) ** power
        return total
