"""Multilayer perceptron with a linear output. The defaults are the static network of arXiv 2007.02686, with tanh.

Departure from the code of that paper (Najarro & Risi 2020): the search starts at Xavier uniform weights. Theirs starts
as PyTorch draws its layers (`--initialization pytorch`), which is narrower.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Layout, Weights
from hebbes.policies.base import InitializedPolicy, check_sizes
from hebbes.policies.kernels.activations import check_activation
from hebbes.policies.layers import compute_dense_shapes, dense


@dataclass(frozen=True)
class MLP(InitializedPolicy):
    """Fully connected layers on the flattened observation."""

    hidden_sizes: tuple[int, ...] = (128, 64)
    bias: bool = False
    activation: str = "tanh"
    """Activation of the hidden layers, a name in `hebbes.policies.kernels.activations`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "hidden_sizes", check_sizes("hidden_sizes", self.hidden_sizes))
        check_activation(self.activation)

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
