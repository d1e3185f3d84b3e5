"""Policy: describes a network and holds no weights. Weights, state and buffers are passed to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32, Shaped

Rows: TypeAlias = Float32[np.ndarray, "members params"]
"""One row of parameters per member."""

State: TypeAlias = Any
"""What changes during an episode: a tree (dict, tuple, list) of arrays with members on axis 0, or None."""

Buffers: TypeAlias = Mapping[str, np.ndarray]
"""Constants that evolution does not search but a policy file keeps, such as observation statistics."""


@dataclass(frozen=True)
class Layout:
    """Shapes of the named arrays that make up a row of parameters, one after another in the order of the mapping."""

    shapes: Mapping[str, tuple[int, ...]]

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Name of each array -> its place in a row of parameters."""
        slices, start = {}, 0
        for name, shape in self.shapes.items():
            slices[name] = slice(start, start + prod(shape))
            start += prod(shape)
        return slices

    @cached_property
    def num_params(self) -> int:
        """Length of a row of parameters."""
        return sum(prod(shape) for shape in self.shapes.values())

    def view(self, rows: Float[np.ndarray, "members params"], name: str) -> Float[np.ndarray, "members ..."]:
        """The named array of every member, a view into `rows` of shape (members, *shape)."""
        return rows[:, self.slices[name]].reshape(len(rows), *self.shapes[name])

    @cached_property
    def matrices(self) -> frozenset[str]:
        """Names of the arrays with two dimensions, (out, in)."""
        return frozenset(name for name, shape in self.shapes.items() if len(shape) == 2)

    def make_factor_layout(self, rank: int) -> "Layout":
        """The layout of low-rank noise: for every matrix a left factor (rank, out) and a right factor (rank, in).

        All other arrays keep their names and shapes.
        """
        shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in self.shapes.items():
            if name in self.matrices:
                shapes[name_left_factor(name)], shapes[name_right_factor(name)] = (rank, shape[0]), (rank, shape[1])
            else:
                shapes[name] = shape
        return Layout(shapes)


def name_left_factor(name: str) -> str:
    """Name of the factor (rank, out) of a matrix's noise."""
    return f"{name}.left"


def name_right_factor(name: str) -> str:
    """Name of the factor (rank, in) of a matrix's noise."""
    return f"{name}.right"


@dataclass(frozen=True)
class LowRankWeights:
    """Members that share one row of parameters and differ by low-rank noise.

    A member's matrix is the center's matrix plus left^T right of its factors. Each of its other arrays is the center's
    plus its noise. The noise is already scaled.
    """

    center: Float32[np.ndarray, " params"]
    """In the layout's order, but every matrix is transposed to (in, out): its outputs are neighbors in memory."""
    noise: Float32[np.ndarray, "members factors"]
    layout: Layout
    """Layout of a member's parameters."""
    factors: Layout
    """Layout of a row of `noise`: `layout.make_factor_layout(rank)`."""

    def __len__(self) -> int:
        """Number of members."""
        return len(self.noise)

    def __getitem__(self, members: Shaped[np.ndarray, " _"]) -> "LowRankWeights":
        """Some of the members, selected by ids or a mask."""
        return LowRankWeights(self.center, self.noise[members], self.layout, self.factors)


Weights: TypeAlias = Rows | LowRankWeights
"""Every member's parameters. Policies read them only through `hebbes.policies.layers`, which takes either kind."""


class Policy(Protocol):
    """A network that acts for many members at once: a frozen dataclass whose fields a policy file can hold."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one member's observation."""

    @property
    def num_outputs(self) -> int:
        """Length of one member's outputs."""

    @property
    def layout(self) -> Layout:
        """Names and shapes of the searched parameters."""

    def check_buffers(self, buffers: Buffers) -> None:
        """Raises ValueError, which says what to do, unless `act` can use these constants safely."""

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """The parameters at which the search starts."""

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """The state at the start of an episode, drawn from one generator per member; None for a static network."""

    def act(
        self,
        weights: Weights,
        observations: Shaped[np.ndarray, "members ..."],
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        buffers: Buffers,
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs; updates `state` in place. A member's row does not depend on the others."""


@runtime_checkable
class TakesReferenceBatch(Protocol):
    """An addition to `Policy`, for networks that normalize by the statistics of a reference batch."""

    @property
    def num_reference_frames(self) -> int:
        """Observations in the buffer `virtual_batch`; 0 if the network takes none."""


def count_reference_frames(policy: Policy) -> int:
    """Observations of the reference batch that a policy takes; 0 if it takes none."""
    return policy.num_reference_frames if isinstance(policy, TakesReferenceBatch) else 0


@runtime_checkable
class EstimatesState(Protocol):
    """An addition to `Policy`, for networks whose state is large."""

    def estimate_state_bytes(self, *, low_rank: bool) -> int:
        """Memory, in bytes, of a member's state; `low_rank` says whether its weights come as factors."""


def estimate_state_bytes(policy: Policy, *, low_rank: bool) -> int:
    """Memory, in bytes, of a member's state; 0 if it is negligible next to its weights."""
    return policy.estimate_state_bytes(low_rank=low_rank) if isinstance(policy, EstimatesState) else 0
