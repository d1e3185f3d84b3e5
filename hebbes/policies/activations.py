"""Activation functions. They keep NaN.

SELU: Klambauer et al. 2017, "Self-Normalizing Neural Networks", arXiv 1706.02515, eq. 2.
"""

import numpy as np
from jaxtyping import Float32

from hebbes.policies import kernels

ACTIVATIONS = {"tanh": 0, "selu": 1, "relu": 2}
"""Name of an activation function of hidden layers -> its number in `hebbes.policies.kernels.activations`."""


def apply_activation(name: str, values: Float32[np.ndarray, "members ..."]) -> None:
    """Applies one of `ACTIVATIONS` to a contiguous array, in place. Tanh and SELU are exact to within 3e-7 of them."""
    kernels.activations.activate_kernel(values.reshape(len(values), -1), ACTIVATIONS[name])


def compute_tanh(x: Float32[np.ndarray, "members ..."]) -> Float32[np.ndarray, "members ..."]:
    """Hyperbolic tangent in a new array."""
    values = np.array(x, order="C")
    apply_activation("tanh", values)
    return values


def sigmoid(x: Float32[np.ndarray, "members ..."]) -> Float32[np.ndarray, "members ..."]:
    """1 / (1 + exp(-x)) in a new array, computed in a form that cannot overflow."""
    return (1 + compute_tanh(x / 2)) / 2
