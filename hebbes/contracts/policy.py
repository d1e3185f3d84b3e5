"""Policy: describes a network and holds no weights; weights, state and buffers travel beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from jaxtyping import Float32, Shaped

Rows: TypeAlias = Float32[np.ndarray, "members params"]
"""One row of parameters a member."""

State: TypeAlias = Any
"""What changes within an episode: a tree (dict, tuple, list) of arrays, members first, or None."""

Buffers: TypeAlias = Mapping[str, np.ndarray]
"""Constants that evolution does not search and a policy file keeps, such as observation statistics."""


@dataclass(frozen=True)
class Layout:
    """Named array shapes, laid one after another in a row of parameters, in the order of the mapping."""

    shapes: Mapping[str, tuple[int, ...]]

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each named array lies in a row of parameters."""
        slices, start = {}, 0
        for name, shape in self.shapes.items():
            slices[name] = slice(start, start + prod(shape))
            start += prod(shape)
        return slices

    @cached_property
    def num_params(self) -> int:
        """Length of a row of parameters."""
        return sum(prod(shape) for shape in self.shapes.values())

    def view(self, rows: Rows, name: str) -> Float32[np.ndarray, "members ..."]:
        """The named array of every member, a view into `rows` of shape (members, *shape)."""
        return rows[:, self.slices[name]].reshape(len(rows), *self.shapes[name])

    @cached_property
    def matrices(self) -> frozenset[str]:
        """Names of the arrays of two dimensions, (out, in)."""
        return frozenset(name for name, shape in self.shapes.items() if len(shape) == 2)

    def factors(self, rank: int) -> "Layout":
        """Layout of low-rank noise: `left(name)` (rank, out) and `right(name)` (rank, in) for every matrix.

        All other arrays keep their names and shapes.
        """
        shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in self.shapes.items():
            if name in self.matrices:
                shapes[left(name)], shapes[right(name)] = (rank, shape[0]), (rank, shape[1])
            else:
                shapes[name] = shape
        return Layout(shapes)


def left(name: str) -> str:
    """Name of the factor of a matrix's noise that has its number of outputs."""
    return f"{name}.left"


def right(name: str) -> str:
    """Name of the factor of a matrix's noise that has its number of inputs."""
    return f"{name}.right"


@dataclass(frozen=True)
class LowRankWeights:
    """Members that share one row of parameters and differ by low-rank noise.

    A member's matrix is the center's plus left^T right of its factors; its other arrays are the center's plus its own
    noise. The scale of the noise is in it.
    """

    center: Float32[np.ndarray, " params"]
    """In the layout's order, save that every matrix lies transposed, (in, out), so that its outputs are neighbours."""
    noise: Float32[np.ndarray, "members factors"]
    layout: Layout
    """Of a member's parameters."""
    factors: Layout
    """Of a row of `noise`: `layout.factors(rank)`."""

    def __len__(self) -> int:
        """Number of members."""
        return len(self.noise)

    def __getitem__(self, members: Shaped[np.ndarray, " _"]) -> "LowRankWeights":
        """Some of the members, by ids or a mask."""
        return LowRankWeights(self.center, self.noise[members], self.layout, self.factors)


Weights: TypeAlias = Rows | LowRankWeights
"""Every member's parameters. Policies read them only through `hebbes.policies.layers`, and so work with either kind."""


class Policy(Protocol):
    """A network, batched over members. Implementations are frozen dataclasses whose fields a policy file can hold."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one member's observation."""

    @property
    def layout(self) -> Layout:
        """Names and shapes of the searched parameters."""

    def check_buffers(self, buffers: Buffers) -> None:
        """ValueError, which says what to do, unless these are constants with which `act` is safe."""

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """Where the search starts."""

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """The state at the start of an episode, drawn from one generator a member; None for a static network."""

    def act(
        self,
        weights: Weights,
        observations: Shaped[np.ndarray, "members ..."],
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        buffers: Buffers,
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs; updates `state` in place. A member's row does not depend on the others."""
