"""Neural learning rules: a small network computes the change of a weight from the activities on its two sides.

Sizes 2-3-1 (9 parameters), 2-3-3-1 (18 parameters), and 2-3-3-1 with biases (25 parameters). All units have tanh, so
that the output lies within [-1, 1]. The networks are those of a branch of Najarro & Risi's code,
enajx/HebbianMetaLearning 4b7de37, hebbian_weights_update.py. Departures:

- Parameters lie layer after layer, each a matrix (out, in) followed by its biases if any. There all biases are last,
  and the second matrix of the network with biases is (in, out). The networks are the same.
- One network serves a layer, or all layers (`hebbes.policies.sharing`). There each synapse has one of its own.
"""

from typing import Any

import numpy as np

from hebbes.compilation import njit
from hebbes.policies.learning_rules import HIDDEN

NUM_ROWS = 1 + 2 * HIDDEN
"""Rows of the buffer in which `network_outputs` works."""
_SATURATED = np.float32(7.9)


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy", inline="always")
def _tanh(x: np.float32) -> np.float32:
    """tanh to within 4e-7, vectorizable: the rational approximation of Eigen's `generic_fast_tanh_float`."""
    x = _SATURATED if x > _SATURATED else x  # two lines: LLVM does not vectorize a single one; NaN stays NaN
    x = -_SATURATED if x < -_SATURATED else x
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
def network_outputs(m: np.ndarray, network: Any, x: np.ndarray, y: np.float32, rows: np.ndarray) -> None:
    """Writes the network's outputs for all presynaptic activities x and one y to rows[0]. `rows` has NUM_ROWS rows.

    `m` begins with the network's parameters. `network` is a value of `learning_rules.NEURAL_RULES`. Each layer runs
    over all synapses before the next, so that LLVM vectorizes.
    """
    deep, bias = network
    for unit in range(HIDDEN):
        hidden, factor, of_y = rows[1 + unit], m[2 * unit], m[2 * unit + 1] * y
        constant = m[2 * HIDDEN + unit] if bias else np.float32(0)
        for i in range(len(x)):
            hidden[i] = _tanh(factor * x[i] + of_y + constant)
    m, below = m[2 * HIDDEN + HIDDEN * bias :], rows[1 : 1 + HIDDEN]
    if deep:
        for unit in range(HIDDEN):
            hidden = rows[1 + HIDDEN + unit]
            _weighted_sum(m[HIDDEN * unit :], m[HIDDEN * HIDDEN + unit] if bias else np.float32(0), below, hidden)
            for i in range(len(x)):
                hidden[i] = _tanh(hidden[i])
        m, below = m[HIDDEN * (HIDDEN + bias) :], rows[1 + HIDDEN :]
    output = rows[0]
    _weighted_sum(m, m[HIDDEN] if bias else np.float32(0), below, output)
    for i in range(len(x)):
        output[i] = _tanh(output[i])


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
def _weighted_sum(m: np.ndarray, constant: np.float32, below: np.ndarray, out: np.ndarray) -> None:
    """Writes the input of one unit for each synapse to `out`. `m` begins with the unit's weights."""
    first, second, third, a, b, c = m[0], m[1], m[2], below[0], below[1], below[2]
    for i in range(len(out)):
        out[i] = first * a[i] + second * b[i] + third * c[i] + constant
