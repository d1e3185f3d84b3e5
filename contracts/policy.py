"""Policy: describes a network and holds no weights; weights, state and buffers travel beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from jaxtyping import Float32, Shaped

Weights: TypeAlias = Float32[np.ndarray, "members params"]
"""One row of parameters a member. Policies read it only through `policies.layers.linear` and `conv`."""

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

    def view(self, weights: Weights, name: str) -> Float32[np.ndarray, "members ..."]:
        """The named array of every member, a view into `weights` of shape (members, *shape)."""
        return weights[:, self.slices[name]].reshape(len(weights), *self.shapes[name])


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
