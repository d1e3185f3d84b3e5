"""pytorch-es' small network (atgambardella/pytorch-es, `--small-net`): two hidden layers of 64 with SELU, and biases.

It is `hebbes.policies.mlp` with these sizes. `--hidden_sizes`, `--bias` and `--activation` have no effect. Departure:
the search starts at Xavier uniform weights and biases of zero, theirs as PyTorch draws its layers
(`--initialization pytorch`).
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Layout, Weights
from hebbes.policies.base import InitializedPolicy
from hebbes.policies.layers import compute_dense_shapes, dense

HIDDEN_SIZES = (64, 64)
ACTIVATION = "selu"


@dataclass(frozen=True)
class Small(InitializedPolicy):
    """Fully connected layers on the flattened observation."""

    @cached_property
    def layout(self) -> Layout:
        """Matrices, each followed by its biases."""
        return Layout(compute_dense_shapes((prod(self.observation_shape), *HIDDEN_SIZES, self.num_outputs), bias=True))

    def forward(
        self, weights: Weights, inputs: Float32[np.ndarray, "members ..."]
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs."""
        return dense(weights, self.layout, inputs.reshape(len(inputs), prod(self.observation_shape)), ACTIVATION)
