"""Multilayer perceptron: tanh hidden layers, linear output; the defaults are the static network of arXiv 2007.02686."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Float32

from contracts.policy import Layout, Weights
from policies.layers import dense, dense_shapes
from policies.static import StaticPolicy, positive_sizes


@dataclass(frozen=True)
class Mlp(StaticPolicy):
    """Fully connected layers on the flattened observation."""

    hidden_sizes: tuple[int, ...] = (128, 64)
    bias: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "hidden_sizes", positive_sizes("hidden_sizes", self.hidden_sizes))

    @cached_property
    def layout(self) -> Layout:
        """Matrices, each followed by its biases if any, from the observation to the outputs."""
        return Layout(
            dense_shapes((prod(self.observation_shape), *self.hidden_sizes, self.num_outputs), bias=self.bias)
        )

    def forward(
        self, weights: Weights, inputs: Float32[np.ndarray, "members ..."]
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs."""
        return dense(weights, self.layout, inputs.reshape(len(inputs), prod(self.observation_shape)))
