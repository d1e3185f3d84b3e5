"""Activation functions. They keep NaN. Tanh has a relative error below 5e-7, SELU too where its output is positive.

Below zero, the absolute error of SELU is below 5e-7.

SELU: Klambauer et al. 2017, "Self-Normalizing Neural Networks", arXiv 1706.02515, eq. 2.
"""

from math import prod

import numpy as np
from jaxtyping import Float32

from hebbes.policies import kernels

ACTIVATIONS = {"tanh": 0, "selu": 1, "relu": 2}
"""Name of an activation function of hidden layers -> its number in `hebbes.policies.kernels.activations`."""


def apply_activation(name: str, values: Float32[np.ndarray, "members ..."]) -> None:
    """Applies one of `ACTIVATIONS` in place. ValueError unless the array is contiguous float32."""
    if values.dtype != np.float32 or not values.flags.c_contiguous:
        raise ValueError(f"{name}: values must be contiguous float32, got {values.dtype} of strides {values.strides}")
    rows = values.reshape(len(values), prod(values.shape[1:]))
    kernels.activations.activate_kernel(rows, ACTIVATIONS[name])


def compute_tanh(x: Float32[np.ndarray, "members ..."]) -> Float32[np.ndarray, "members ..."]:
    """Hyperbolic tangent in a new array."""
    values = np.array(x, order="C")
    apply_activation("tanh", values)
    return values


def sigmoid(x: Float32[np.ndarray, "members ..."]) -> Float32[np.ndarray, "members ..."]:
    """1 / (1 + exp(-x)) in a new array, computed in a form that cannot overflow."""
    values = np.ascontiguousarray(x / 2)
    apply_activation("tanh", values)
    values += 1
    values /= 2
    return values
