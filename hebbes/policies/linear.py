"""Linear policy: one matrix times the observation, as in ARS (Mania et al. 2018, arXiv 1803.07055)."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import option
from hebbes.contracts.policy import Layout, Weights
from hebbes.policies.base import StaticPolicy
from hebbes.policies.layers import compute_dense_shapes, dense


@dataclass(frozen=True)
class Linear(StaticPolicy):
    """A linear map of the flattened observation. The search starts at zero, as in ARS."""

    bias: bool = option(False, "add a bias to each output")

    @cached_property
    def layout(self) -> Layout:
        """The matrix, and the biases if `bias`."""
        return Layout(compute_dense_shapes((prod(self.observation_shape), self.num_outputs), bias=self.bias))

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """Zeros."""
        return np.zeros(self.layout.num_params, np.float32)

    def forward(
        self, weights: Weights, inputs: Float32[np.ndarray, "members ..."]
    ) -> Float32[np.ndarray, "members outputs"]:
        """The product of the matrix and the observation, plus the biases if `bias`."""
        return dense(weights, self.layout, inputs.reshape(len(inputs), prod(self.observation_shape)))
