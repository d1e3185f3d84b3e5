"""Plastic layers: weights that learn from the activities on their two sides, in one pass over memory.

Najarro & Risi, "Meta-Learning through Hebbian Plasticity in Random Networks", NeurIPS 2020, arXiv 2007.02686. With x
the presynaptic and y the postsynaptic activity, every rule has some of the terms of

    w <- w + eta (A x y + B x + C y + D) + D_out

A modulated layer multiplies that change, or its running average in a trace E of each synapse, by M in [-1, 1] (Miconi,
Rawal, Clune & Stanley, "Backpropamine", ICLR 2019, arXiv 2002.10585, with our change instead of x y, without their
fixed part of the weights, with M of the reward instead of an output of the network, with E that includes the change of
the same env step, and without their clipping, unless the weights are clipped):

    E <- (1 - k) E + k change,    w <- w + M E

A row of weights learns, is searched for its largest weight and is multiplied with the layer's new inputs while it is in
the L1 cache. The division by the layer's largest weight waits until the weights are read the next time: a layer stores
undivided weights and their divisor, and their quotient is the weights that act.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32

from hebbes.compilation import njit
from hebbes.contracts.policy import Rows
from hebbes.policies.kernels.activations import tanh
from hebbes.policies.kernels.linear import dot
from hebbes.policies.kernels.neural_rule import NUM_ROWS, network_outputs
from hebbes.policies.rule_layout import LayerRule
from hebbes.simd import bits, float_of, unit_stride

BOUND = np.float32(1)
"""Largest weight that `clip` leaves."""
MAGNITUDE = np.int32(0x7FFFFFFF)
"""Bits of a float32 without its sign."""


@dataclass
class PlasticLayer:
    """One plastic layer of every member. `plastic_linear` changes `weights`, `divisors` and `traces`."""

    weights: Float32[np.ndarray, "members out in"]
    """Not divided yet by `divisors`."""
    divisors: Float32[np.ndarray, " members"]
    pre: Float32[np.ndarray, "members in"]
    post: Float32[np.ndarray, "members out"]
    due: Bool[np.ndarray, " members"]
    """Whether a member learns from `pre` and `post` before it acts."""
    modulation: Float32[np.ndarray, " members"] | None = None
    """M. None without modulation and traces."""
    traces: Float32[np.ndarray, "members out in"] | None = None
    """E, in the units of the divided weights, changed in place. None without traces."""
    rates: Float32[np.ndarray, " members"] | None = None
    """k. None without traces."""


@njit(nogil=True, cache=True)
def _part(array: Any, index: Any) -> Any:
    """array[index], or None. A function, because conditional expressions made the kernel six times slower."""
    if array is None:
        return None
    return array[index]


@njit(nogil=True, cache=True)
def _sets(
    row: np.ndarray, start: int, tables: Any, num_sets: int, network: Any, first: int, num_outputs: int,
    x: np.ndarray, y: np.float32, buffer: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Coefficients (neurons, coefficients, in) of all neurons. If shared or neural: of neuron `first`, in `buffer`."""
    if network is not None:
        network_outputs(row[start:], network, x, y, buffer[0])
        return buffer
    _, count, num_inputs = buffer.shape
    if tables is None:
        return row[start : start + num_outputs * count * num_inputs].reshape((num_outputs, count, num_inputs))
    for place in range(count):
        numbers, table = row[start + place * num_sets :], tables[place]
        for i in range(num_inputs):
            buffer[0, place, i] = numbers[table[0, first, i]]
        for factor in range(1, len(table)):
            for i in range(num_inputs):
                buffer[0, place, i] *= numbers[table[factor, first, i]]
    return buffer


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy", inline="always")
def _change(
    change: np.float32, sets: Any, out: int, i: int, x: np.float32, y: np.float32,
    A: Any, B: Any, C: Any, D: Any, eta: Any, D_out: Any,
) -> np.float32:  # fmt: skip
    """The change of one weight by the terms that are not None. eta scales the given `change` too."""
    if A is not None:
        change += sets[out, A, i] * (x * y)
    if B is not None:
        change += sets[out, B, i] * x
    if C is not None:
        change += sets[out, C, i] * y
    if D is not None:
        change += sets[out, D, i]
    if eta is not None:
        change *= sets[out, eta, i]
    if D_out is not None:
        change += sets[out, D_out, i]
    return change


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
def _learn(
    weights: np.ndarray, divisor: np.float32, x: np.ndarray, post: np.ndarray, oja: np.float32, bound: np.float32,
    sets: np.ndarray, A: Any, B: Any, C: Any, D: Any, eta: Any, D_out: Any,
    modulation: Any, trace: Any, rate: Any, squash: bool, inputs: np.ndarray, outputs: np.ndarray, largest: np.int32,
) -> np.int32:  # fmt: skip
    """Learns by the terms that are not None and multiplies. Returns the largest of `largest` and the new magnitudes.

    Magnitudes are compared by their bits: the bits of floats >= 0 have the same order as the floats.
    """
    zero = np.float32(0)
    for out in range(len(weights)):
        y = post[out]
        decay = oja * y * y
        row_largest = np.int32(0)
        if trace is not None:  # a separate loop: LLVM vectorizes only loops over few arrays
            for i in range(weights.shape[1]):
                change = _change(zero, sets, out, i, x[i], y, A, B, C, D, eta, D_out)
                trace[out, i] += rate * (change - trace[out, i])
        for i in range(weights.shape[1]):
            old = weights[out, i] / divisor
            if modulation is None:
                change = _change(-decay * old, sets, out, i, x[i], y, A, B, C, D, eta, D_out)
            else:
                if trace is None:
                    change = _change(zero, sets, out, i, x[i], y, A, B, C, D, eta, D_out)
                else:
                    change = trace[out, i]
                loss = decay * old
                if eta is not None:
                    loss *= sets[out, eta, i]
                change = modulation * change - abs(modulation) * loss
            new = old + change
            new = bound if new > bound else new  # two lines: LLVM does not vectorize a single one; NaN stays NaN
            new = -bound if new < -bound else new
            weights[out, i] = new
            row_largest = max(row_largest, np.int32(bits(new) & MAGNITUDE))
        largest = max(largest, row_largest)
        if squash:
            for i in range(weights.shape[1]):
                weights[out, i] = tanh(weights[out, i])
        outputs[out] = dot(weights, out, inputs)
    return largest


@njit(nogil=True, cache=True, error_model="numpy")
def _plastic_kernel(
    params: np.ndarray, start: int, columns: Any, tables: Any, num_sets: int, network: Any,
    weights: np.ndarray, divisors: np.ndarray, pre: np.ndarray, post: np.ndarray, due: np.ndarray,
    modulation: Any, traces: Any, rates: Any,
    max_abs: bool, squash: bool, oja: np.float32, bound: np.float32, buffer: np.ndarray,
    inputs: np.ndarray, outputs: np.ndarray,
) -> None:  # fmt: skip
    num_outputs = weights.shape[1]
    rows_at_once = num_outputs if tables is None and network is None else 1
    A, B, C, D, eta, D_out = columns
    for member in range(len(weights)):
        row, largest = unit_stride(params[member]), np.int32(0)
        for first in range(0, num_outputs, rows_at_once):
            rows = slice(first, first + rows_at_once)
            if due[member]:
                largest = _learn(
                    weights[member, rows], divisors[member], pre[member], post[member, rows], oja, bound,
                    _sets(
                        row, start, tables, num_sets, network, first, num_outputs, pre[member], post[member, first],
                        buffer,
                    ), A, B, C, D, eta, D_out,
                    _part(modulation, member), _part(_part(traces, member), rows), _part(rates, member),
                    squash, inputs[member], outputs[member, rows], largest,
                )  # fmt: skip
            else:
                for out in range(first, first + rows_at_once):
                    outputs[member, out] = dot(weights[member], out, inputs[member])
        if max_abs and due[member]:
            divisors[member] = float_of(largest) if largest else np.float32(1)
        for out in range(num_outputs):
            output = outputs[member, out] / divisors[member]
            outputs[member, out] = output + np.float32(0) * output  # infinity becomes NaN, which no tanh can hide


def plastic_linear(
    weights: Rows, rule: LayerRule, layer: PlasticLayer, normalization: str, inputs: Float32[np.ndarray, "members in"]
) -> Float32[np.ndarray, "members out"]:
    """Outputs of a plastic layer. The members that are due learn first.

    A member's result has the same bits alone and among others. An output that is not finite is NaN.

    Args:
        weights: rows of parameters, which hold the coefficients.
        rule: where the rows hold them.
        layer: the plastic weights, and the activities from which they learn.
        normalization: one of `learning_rules.NORMALIZATIONS`, applied after learning. "max_abs" divides a layer by its
            largest absolute weight, if that is not 0. "clip" bounds weights by 1, and "tanh" takes their tanh. "oja"
            adds -y^2 w to the terms that eta scales. This decay bypasses the trace and is multiplied by |M|, because
            the sign of M would turn it into growth.
        inputs: contiguous.
    """
    outputs = np.empty_like(layer.post)
    num_rows = NUM_ROWS if rule.network else sum(column is not None for column in rule.columns)
    buffer = np.empty((1, num_rows, layer.weights.shape[2]), np.float32)
    _plastic_kernel(
        weights, rule.start, rule.columns, rule.tables, rule.num_sets, rule.network,
        layer.weights, layer.divisors, layer.pre, layer.post, layer.due,
        layer.modulation, layer.traces, layer.rates,
        normalization == "max_abs", normalization == "tanh", np.float32(normalization == "oja"),
        BOUND if normalization == "clip" else np.float32(np.inf), buffer, inputs, outputs,
    )  # fmt: skip
    return outputs
