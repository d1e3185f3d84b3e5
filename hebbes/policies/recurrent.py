"""Base of recurrent policies: features of the observation, a cell whose state lasts one episode, a linear head.

The state is zero at the start of an episode. The search starts as for the other policies, at Xavier uniform matrices
and kernels (the gates of a cell count as one layer) and biases of zero. PyTorch would draw the cell's arrays from
U(-1 / sqrt(units), 1 / sqrt(units)), which is about as wide for the sizes used here.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Shaped

from hebbes.contracts.option import option
from hebbes.contracts.policy import Buffers, Layout, State, Weights
from hebbes.policies.activations import ACTIVATIONS, apply_activation
from hebbes.policies.base import SizedPolicy, xavier_uniform
from hebbes.policies.layers import compute_dense_shapes, dense, linear
from hebbes.policies.recurrent_cells import Cell


@dataclass(frozen=True)
class RecurrentPolicy(SizedPolicy, ABC):
    """A network with a recurrent cell before its linear output. A subclass gives the cell, its size and its inputs."""

    cell: ClassVar[Cell]

    @property
    @abstractmethod
    def num_units(self) -> int:
        """Units of the cell."""

    @property
    @abstractmethod
    def feature_shapes(self) -> tuple[dict[str, tuple[int, ...]], int]:
        """Shapes of the arrays before the cell, by name, and the number of features that enter the cell."""

    @abstractmethod
    def compute_features(
        self, weights: Weights, inputs: Float32[np.ndarray, "members ..."], state: State
    ) -> Float32[np.ndarray, "members features"]:
        """The features that enter the cell, contiguous, for prepared inputs."""

    @cached_property
    def layout(self) -> Layout:
        """The features' arrays, the cell's, then the head's."""
        shapes, num_features = self.feature_shapes
        head = {"head": (self.num_outputs, self.num_units), "head_bias": (self.num_outputs,)}
        return Layout(shapes | self.cell.compute_shapes(num_features, self.num_units) | head)

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """Xavier uniform matrices and kernels, biases of zero."""
        return xavier_uniform(self.layout, rng)

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """Zeros: no memory of the previous episode."""
        return {name: np.zeros((len(weights), self.num_units), np.float32) for name in self.cell.state_names}

    def act(
        self,
        weights: Weights,
        observations: Shaped[np.ndarray, "members ..."],
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        buffers: Buffers,
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs. Rewards are ignored. After an observation that is not finite, all outputs are NaN."""
        features = self.compute_features(weights, self.prepare_inputs(observations, buffers), state)
        self.cell.update(weights, self.layout, features, state)
        return linear(weights, self.layout, "head", state["hidden"], "head_bias")


@dataclass(frozen=True)
class DenseRecurrentPolicy(RecurrentPolicy):
    """The flattened observation enters the cell, after fully connected layers with activations if there are any."""

    hidden_sizes: tuple[int, ...] = option((128, 64), "units of each hidden layer before the cell", range=">= 1")
    recurrent_size: int = option(64, "units of the recurrent cell", range=">= 1")
    activation: str = option("tanh", "activation of the hidden layers before the cell", choices=tuple(ACTIVATIONS))

    @property
    def num_units(self) -> int:
        """Units of the cell."""
        return self.recurrent_size

    @cached_property
    def feature_shapes(self) -> tuple[dict[str, tuple[int, ...]], int]:
        """Matrices and biases of the layers before the cell, and the size of the last layer."""
        sizes = (prod(self.observation_shape), *self.hidden_sizes)
        return compute_dense_shapes(sizes, bias=True), sizes[-1]

    def compute_features(
        self, weights: Weights, inputs: Float32[np.ndarray, "members ..."], state: State
    ) -> Float32[np.ndarray, "members features"]:
        """Activations of the last layer before the cell, or the flattened observation if there is none."""
        flat = inputs.reshape(len(inputs), prod(self.observation_shape))
        if not self.hidden_sizes:
            return flat
        features = dense(weights, self.layout, flat, self.activation)
        apply_activation(self.activation, features)
        return features
