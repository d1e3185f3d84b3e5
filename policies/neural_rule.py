"""Neural learning rule: the change of a weight is a small network's output for the activities on its two sides.

Sizes 2-3-1 (9 parameters), 2-3-3-1 (18) and, with biases, 25; tanh hidden units, linear output. Its parameters lie
layer after layer, each a matrix (out, in) followed by its biases if any.
"""

from typing import Any

import numpy as np
from numba import njit

NEURAL_RULES: dict[str, tuple[bool, bool]] = {
    "neural_9": (False, False),
    "neural_18": (True, False),
    "neural_25": (True, True),
}
"""Whether each has a second hidden layer, and biases."""
HIDDEN = 3
_SATURATED = np.float32(7.9)


def num_network_params(deep: bool, bias: bool) -> int:
    """How many parameters such a network has."""
    sizes = (2, HIDDEN, HIDDEN, 1) if deep else (2, HIDDEN, 1)
    return sum((sizes[k] + bias) * sizes[k + 1] for k in range(len(sizes) - 1))


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy", inline="always")
def _tanh(x: np.float32) -> np.float32:
    """Within 4e-7 of tanh, and fit for vectors: the rational approximation of Eigen's `generic_fast_tanh_float`."""
    x = _SATURATED if x > _SATURATED else -_SATURATED if x < -_SATURATED else x
    s = x * x
    p = np.float32(-2.76076847742355e-16) * s + np.float32(2.00018790482477e-13)
    p = p * s + np.float32(-8.60467152213735e-11)
    p = p * s + np.float32(5.12229709037114e-08)
    p = p * s + np.float32(1.48572235717979e-05)
    p = p * s + np.float32(6.37261928875436e-04)
    p = p * s + np.float32(4.89352455891786e-03)
    q = np.float32(1.19825839466702e-06) * s + np.float32(1.18534705686654e-04)
    q = q * s + np.float32(2.26843463243900e-03)
    q = q * s + np.float32(4.89352518554385e-03)
    return x * p / q


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
def network_output(m: np.ndarray, deep: Any, bias: Any, x: np.float32, y: np.float32) -> np.float32:
    """The network's output for one synapse; `m` begins with its parameters. `deep` and `bias` are None for no."""
    if bias is None:
        h0, h1, h2 = _tanh(m[0] * x + m[1] * y), _tanh(m[2] * x + m[3] * y), _tanh(m[4] * x + m[5] * y)
        if deep is None:
            return m[6] * h0 + m[7] * h1 + m[8] * h2
        g0 = _tanh(m[6] * h0 + m[7] * h1 + m[8] * h2)
        g1 = _tanh(m[9] * h0 + m[10] * h1 + m[11] * h2)
        g2 = _tanh(m[12] * h0 + m[13] * h1 + m[14] * h2)
        return m[15] * g0 + m[16] * g1 + m[17] * g2
    h0 = _tanh(m[0] * x + m[1] * y + m[6])
    h1 = _tanh(m[2] * x + m[3] * y + m[7])
    h2 = _tanh(m[4] * x + m[5] * y + m[8])
    g0 = _tanh(m[9] * h0 + m[10] * h1 + m[11] * h2 + m[18])
    g1 = _tanh(m[12] * h0 + m[13] * h1 + m[14] * h2 + m[19])
    g2 = _tanh(m[15] * h0 + m[16] * h1 + m[17] * h2 + m[20])
    return m[21] * g0 + m[22] * g1 + m[23] * g2 + m[24]
