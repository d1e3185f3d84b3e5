"""Layers with low-rank weights: one product with the matrix shared by all members, plus that of each member's factors.

Sarkar, Fellows, Duque et al., "Evolution Strategies at the Hyperscale" (EGGROLL), arXiv 2511.16652: a member's
product is x W^T + (x B) A^T, and its own matrix W + A B^T is never made. The shared matrix is read in panels of sixteen
outputs. Each panel stays in the L1 cache while it is multiplied with the inputs of all members, eight at a time. Every
sum runs over the inputs in their order, in every batch.
"""

import numpy as np
from jaxtyping import Float32
from numba import int64, types, void

from hebbes.compilation import njit
from hebbes.contracts.policy import Layout, LowRankWeights, Rows, name_left_factor, name_right_factor
from hebbes.policies.kernels.linear import dot
from hebbes.simd import WIDE_LANES, multiply_add, store, wide_load, wide_zeros

_MATRIX = types.Array(types.float32, 2, "C", readonly=True)
_OUTPUTS = types.Array(types.float32, 2, "C")
_AT_ONCE = 8
"""Members that share one reading of a panel."""


@njit(nogil=True, cache=True)
def _panel_sums(panel: np.ndarray, inputs: np.ndarray, members: tuple[int, ...], sums: np.ndarray, start: int) -> None:
    """Fills sums[member, start : start + WIDE_LANES] for eight members, which may repeat."""
    m0, m1, m2, m3, m4, m5, m6, m7 = members
    x0, x1, x2, x3 = inputs[m0], inputs[m1], inputs[m2], inputs[m3]
    x4, x5, x6, x7 = inputs[m4], inputs[m5], inputs[m6], inputs[m7]
    s0, s1, s2, s3 = wide_zeros(), wide_zeros(), wide_zeros(), wide_zeros()
    s4, s5, s6, s7 = wide_zeros(), wide_zeros(), wide_zeros(), wide_zeros()
    for i in range(len(x0)):
        weights = wide_load(panel, i * WIDE_LANES)
        s0, s1 = multiply_add(x0[i], weights, s0), multiply_add(x1[i], weights, s1)
        s2, s3 = multiply_add(x2[i], weights, s2), multiply_add(x3[i], weights, s3)
        s4, s5 = multiply_add(x4[i], weights, s4), multiply_add(x5[i], weights, s5)
        s6, s7 = multiply_add(x6[i], weights, s6), multiply_add(x7[i], weights, s7)
    store(sums[m0], start, s0), store(sums[m1], start, s1), store(sums[m2], start, s2), store(sums[m3], start, s3)
    store(sums[m4], start, s4), store(sums[m5], start, s5), store(sums[m6], start, s6), store(sums[m7], start, s7)


@njit(nogil=True, cache=True)
def _shared_product(matrix: np.ndarray, inputs: np.ndarray, outputs: np.ndarray) -> None:
    """Fills outputs (members, out) with the matrix (in, out) times each member's inputs."""
    (num_inputs, num_outputs), last = matrix.shape, len(inputs) - 1
    panel = np.zeros(num_inputs * WIDE_LANES, np.float32)
    whole = num_outputs - num_outputs % WIDE_LANES
    rest = np.empty((len(inputs), WIDE_LANES), np.float32)
    for start in range(0, num_outputs, WIDE_LANES):
        for i in range(num_inputs):
            if start < whole:
                store(panel, i * WIDE_LANES, wide_load(matrix[i], start))
            else:
                for out in range(num_outputs - whole):
                    panel[i * WIDE_LANES + out] = matrix[i, whole + out]
        for m in range(0, last + 1, _AT_ONCE):  # past the end, the last member is repeated
            members = (
                m, min(m + 1, last), min(m + 2, last), min(m + 3, last),
                min(m + 4, last), min(m + 5, last), min(m + 6, last), min(m + 7, last),
            )  # fmt: skip
            if start < whole:
                _panel_sums(panel, inputs, members, outputs, start)
            else:
                _panel_sums(panel, inputs, members, rest, 0)
    for member in range(last + 1):
        for out in range(num_outputs - whole):
            outputs[member, whole + out] = rest[member, out]


@njit(void(_MATRIX, _MATRIX, int64, int64, int64, _MATRIX, _OUTPUTS), nogil=True, cache=True, fastmath={"contract"})
def _low_rank_kernel(
    matrix: np.ndarray, noise: np.ndarray, rank: int, lefts: int, rights: int, inputs: np.ndarray, outputs: np.ndarray
) -> None:
    num_inputs, num_outputs = inputs.shape[1], outputs.shape[1]
    _shared_product(matrix, inputs, outputs)
    for member in range(len(outputs)):
        row, output = noise[member], outputs[member]
        factors = row[rights : rights + rank * num_inputs].reshape((rank, num_inputs))
        for factor in range(rank):
            first, amount = lefts + factor * num_outputs, dot(factors, factor, inputs[member])
            for out in range(num_outputs):
                output[out] += row[first + out] * amount


def low_rank_linear(
    weights: LowRankWeights, layout: Layout, name: str, inputs: Float32[np.ndarray, "members in"]
) -> Float32[np.ndarray, "members out"]:
    """Each member's matrix `name` times its inputs. `hebbes.policies.layers.linear` checks the arguments."""
    num_outputs, num_inputs = layout.shapes[name]
    matrix = weights.center[layout.slices[name]].reshape(num_inputs, num_outputs)
    outputs = np.empty((len(inputs), num_outputs), np.float32)
    rank = weights.factors.shapes[name_left_factor(name)][0]
    lefts, rights = (weights.factors.slices[find(name)].start for find in (name_left_factor, name_right_factor))
    _low_rank_kernel(matrix, weights.noise, rank, lefts, rights, inputs, outputs)
    return outputs


def make_member_arrays(weights: LowRankWeights, layout: Layout, name: str) -> Float32[np.ndarray, "members ..."]:
    """A new array: the array `name` of every member."""
    center, shape = weights.center[layout.slices[name]], layout.shapes[name]
    if name not in layout.matrices:
        return center.reshape(shape) + weights.factors.view(weights.noise, name)
    factors = (
        weights.factors.view(weights.noise, factor) for factor in (name_left_factor(name), name_right_factor(name))
    )
    return center.reshape(shape[::-1]).T + np.einsum("mro,mri->moi", *factors)


def make_member_rows(weights: LowRankWeights, layout: Layout) -> Rows:
    """A new array: every member's whole row of parameters."""
    arrays = [make_member_arrays(weights, layout, name).reshape(len(weights), -1) for name in layout.shapes]
    return np.concatenate(arrays, axis=1)
