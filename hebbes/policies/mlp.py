"""Multilayer perceptron with a linear output. The defaults are the static network of arXiv 2007.02686, with tanh.

Departure from the code of that paper (Najarro & Risi 2020): the search starts at Xavier uniform weights. Theirs starts
as PyTorch draws its layers (`--initialization pytorch`), which is narrower.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import option
from hebbes.contracts.policy import Layout, Weights
from hebbes.policies.activations import ACTIVATIONS
from hebbes.policies.base import InitializedPolicy
from hebbes.policies.layers import compute_dense_shapes, dense


@dataclass(frozen=True)
class MLP(InitializedPolicy):
    """Fully connected layers on the flattened observation."""

    hidden_sizes: tuple[int, ...] = option((128, 64), "units of each hidden layer", range=">= 1")
    bias: bool = option(False, "give the layers biases")
    activation: str = option("tanh", "activation of the hidden layers", choices=tuple(ACTIVATIONS))

    @cached_property
    def layout(self) -> Layout:
        """Matrices from the first layer to the last, each followed by its biases if `bias`."""
        return Layout(
            compute_dense_shapes((prod(self.observation_shape), *self.hidden_sizes, self.num_outputs), bias=self.bias)
        )

    def forward(
        self, weights: Weights, inputs: Float32[np.ndarray, "members ..."]
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs."""
        flat = inputs.reshape(len(inputs), prod(self.observation_shape))
        return dense(weights, self.layout, flat, self.activation)
