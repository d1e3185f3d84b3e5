"""Activation functions. They keep NaN. Those of the table work in place.

SELU: Klambauer et al. 2017, "Self-Normalizing Neural Networks", arXiv 1706.02515, eq. 2.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32

from hebbes.policies import kernels


def tanh(values: Float32[np.ndarray, "members ..."]) -> None:
    """Hyperbolic tangent."""
    np.tanh(values, out=values)


def relu(values: Float32[np.ndarray, "members ..."]) -> None:
    """max(x, 0)."""
    np.maximum(values, 0, out=values)


def selu(values: Float32[np.ndarray, "members ..."]) -> None:
    """lambda x for x > 0, else lambda alpha (e^x - 1), to within 3e-7. Arrays must be contiguous."""
    kernels.activations.selu_kernel(values.reshape(len(values), -1))


def sigmoid(x: Float32[np.ndarray, " ..."]) -> Float32[np.ndarray, " ..."]:
    """1 / (1 + exp(-x)) in a new array, computed in a form that cannot overflow."""
    return (1 + np.tanh(x / 2)) / 2


ACTIVATIONS: dict[str, Callable[[Float32[np.ndarray, "members ..."]], None]] = {
    "tanh": tanh,
    "selu": selu,
    "relu": relu,
}
