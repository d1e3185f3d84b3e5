"""Linear policy: outputs are one matrix times the observation (Mania et al. 2018, arXiv 1803.07055, call it ARS)."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Layout, Weights
from hebbes.policies.layers import dense, dense_shapes
from hebbes.policies.base import StaticPolicy


@dataclass(frozen=True)
class Linear(StaticPolicy):
    """A linear map of the flattened observation. The search starts at zero, as in ARS."""

    bias: bool = False

    @cached_property
    def layout(self) -> Layout:
        """The matrix, and the biases if any."""
        return Layout(dense_shapes((prod(self.observation_shape), self.num_outputs), bias=self.bias))

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """Zeros."""
        return np.zeros(self.layout.num_params, np.float32)

    def forward(
        self, weights: Weights, inputs: Float32[np.ndarray, "members ..."]
    ) -> Float32[np.ndarray, "members outputs"]:
        """The product."""
        return dense(weights, self.layout, inputs.reshape(len(inputs), prod(self.observation_shape)))
