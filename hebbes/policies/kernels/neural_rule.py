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
from hebbes.policies.kernels.activations import tanh
from hebbes.policies.learning_rules import HIDDEN

NUM_ROWS = 1 + 2 * HIDDEN
"""Rows of the buffer in which `network_outputs` works."""


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
            hidden[i] = tanh(factor * x[i] + of_y + constant)
    m, below = m[2 * HIDDEN + HIDDEN * bias :], rows[1 : 1 + HIDDEN]
    if deep:
        for unit in range(HIDDEN):
            hidden = rows[1 + HIDDEN + unit]
            _weighted_sum(m[HIDDEN * unit :], m[HIDDEN * HIDDEN + unit] if bias else np.float32(0), below, hidden)
            for i in range(len(x)):
                hidden[i] = tanh(hidden[i])
        m, below = m[HIDDEN * (HIDDEN + bias) :], rows[1 + HIDDEN :]
    output = rows[0]
    _weighted_sum(m, m[HIDDEN] if bias else np.float32(0), below, output)
    for i in range(len(x)):
        output[i] = tanh(output[i])


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
def _weighted_sum(m: np.ndarray, constant: np.float32, below: np.ndarray, out: np.ndarray) -> None:
    """Writes the input of one unit for each synapse to `out`. `m` begins with the unit's weights."""
    first, second, third, a, b, c = m[0], m[1], m[2], below[0], below[1], below[2]
    for i in range(len(out)):
        out[i] = first * a[i] + second * b[i] + third * c[i] + constant
