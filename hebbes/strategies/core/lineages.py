"""Lineages: members described by the mutations that lead to them. Two numbers seed the noise of each mutation.

Such et al. 2017, "Deep Neuroevolution", arXiv 1712.06567, sec. 3.1. Their lineages grow without bound. Ours are
compacted, so that the number of mutations needed to make a parent is bounded. Mutations are added one after the other
in float32, so that a lineage gives the same bits whether it is compacted or not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int

from hebbes.contracts.policy import Weights
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.strategies.core.restoring import copy_matching_arrays

MAX_MUTATIONS = 8
"""Largest number of mutations that a parent may have; with more, all parents become bases."""


@dataclass(frozen=True)
class ParentLineages:
    """The parents of a generation. Each is a base, a row of weights, and the mutations since."""

    bases: Float32[np.ndarray, "bases params"]
    base_ids: Int[np.ndarray, " parents"]
    mutations: tuple[tuple[tuple[int, int], ...], ...]
    """The mutations of each parent, oldest first, as (generation, member)."""
    seed: int
    sigma: float

    def __len__(self) -> int:
        """Number of parents."""
        return len(self.base_ids)

    def make_row(self, parent: int) -> Float32[np.ndarray, " params"]:
        """Parameters of a parent."""
        row = self.bases[self.base_ids[parent]].copy()
        for generation, member in self.mutations[parent]:
            self.mutate(row, generation, member)
        return row

    def mutate(self, row: Float32[np.ndarray, " params"], generation: int, member: int) -> None:
        """Turns the row of a member's parent into that of the member, in place."""
        rng = make_generator(self.seed, Purpose.NOISE, generation=generation, member=member)
        row += np.float32(self.sigma) * rng.standard_normal(len(row), dtype=np.float32)

    def select(self, parents: Sequence[int], mutations: Sequence[tuple[tuple[int, int], ...]]) -> "ParentLineages":
        """The given parents, each with further mutations; one may appear several times. Unused bases are dropped."""
        base_ids, bases = np.unique(self.base_ids[list(parents)], return_inverse=True)
        extended = tuple(self.mutations[parent] + more for parent, more in zip(parents, mutations, strict=True))
        selected = ParentLineages(self.bases[base_ids], bases, extended, self.seed, self.sigma)
        return selected if max(map(len, extended)) <= MAX_MUTATIONS else selected.compact()

    def compact(self) -> "ParentLineages":
        """The same parents, each as a base without mutations."""
        rows = np.stack([self.make_row(parent) for parent in range(len(self))])
        return ParentLineages(rows, np.arange(len(self)), ((),) * len(self), self.seed, self.sigma)

    def state_dict(self) -> dict[str, np.ndarray]:
        """The bases, the base of each parent, all mutations in one table, and their number for each parent."""
        table = [step for steps in self.mutations for step in steps]
        return {
            "bases": self.bases.copy(),
            "base_ids": self.base_ids.astype(np.int64),
            "mutations": np.array(table, np.int64).reshape(-1, 2),
            "num_mutations": np.array([len(steps) for steps in self.mutations], np.int64),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> "ParentLineages":
        """The parents that `state_dict` described; KeyError or ValueError for anything else."""
        template = {
            name: np.broadcast_to(np.zeros((), own.dtype), (len(np.atleast_1d(state[name])), *own.shape[1:]))
            for name, own in self.state_dict().items()  # the numbers of rows are checked below
        }
        bases, base_ids, table, counts = copy_matching_arrays(template, state).values()
        fits = len(base_ids) == len(counts) > 0 and 0 <= counts.min() <= counts.max() <= len(table) == counts.sum()
        if not fits or not 0 <= base_ids.min() <= base_ids.max() < len(bases) or table.min(initial=0) < 0:
            raise ValueError("bases, base_ids, mutations and num_mutations do not fit together, or are negative")
        steps = iter([(int(generation), int(member)) for generation, member in table])
        mutations = tuple(tuple(next(steps) for _ in range(count)) for count in counts)
        return ParentLineages(bases, base_ids, mutations, self.seed, self.sigma)


@dataclass(frozen=True)
class LineagePopulation:
    """Children, each one mutation away from its parent, and the first parent, unchanged, as the last member."""

    parents: ParentLineages
    parent_of: Int[np.ndarray, " population_size"]
    generation: int

    def __len__(self) -> int:
        """Number of members: the children and the first parent."""
        return len(self.parent_of) + 1

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members `ids`, one row each; every parent is computed once."""
        rows = np.empty((len(ids), self.parents.bases.shape[1]), np.float32)
        parent_rows: dict[int, Float32[np.ndarray, " params"]] = {}
        for row, member in zip(rows, ids, strict=True):
            is_child = member < len(self.parent_of)
            parent = int(self.parent_of[member]) if is_child else 0
            if parent not in parent_rows:
                parent_rows[parent] = self.parents.make_row(parent)
            row[:] = parent_rows[parent]
            if is_child:
                self.parents.mutate(row, self.generation, member)
        return rows
