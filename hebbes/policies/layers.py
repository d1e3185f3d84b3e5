"""Layers that multiply inputs with each member's weights. Policies read weights only through this module.

The kernels are serial and release the GIL, so that an engine can run several chunks of members in threads. A member's
sums are added in the same order in every batch, so that its result has the same bits alone and among others. Dense rows
are read in place.
"""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import prod

import numpy as np
from jaxtyping import Float32, Int64

from hebbes.contracts.policy import Layout, LowRankWeights, Rows, Weights
from hebbes.policies import kernels
from hebbes.policies.activations import ACTIVATIONS, apply_activation

_ABSENT = -1
"""Stands for the place of a bias where there is none."""


def linear(
    weights: Weights, layout: Layout, name: str, inputs: Float32[np.ndarray, "members in"], bias: str | None = None
) -> Float32[np.ndarray, "members out"]:
    """Each member's matrix `name`, of layout shape (out, in), times its inputs (contiguous), plus the vector `bias`.

    With low-rank weights the product with the shared matrix is computed for all members at once.
    """
    _check_arguments(weights, layout, name, inputs)
    if isinstance(weights, LowRankWeights):
        product = kernels.low_rank.low_rank_linear(weights, layout, name, inputs)
        return product if bias is None else product + kernels.low_rank.make_member_arrays(weights, layout, bias)
    outputs = np.empty((len(inputs), layout.shapes[name][0]), np.float32)
    bias_start = _ABSENT if bias is None else layout.slices[bias].start
    kernels.linear.linear_kernel(weights, layout.slices[name].start, bias_start, inputs, outputs)
    return outputs


def compute_pooled_size(length: int, size: int, stride: int) -> int:
    """Number of rows after a valid convolution of `length` rows and 2x2 pooling. Below 1 if `length` is too small."""
    return ((length - size) // stride + 1) // 2


def compute_conv_size(length: int, size: int, stride: int, padding: int) -> int:
    """Number of rows after a convolution of `length` rows with zero padding. Below 1 if `length` is too small."""
    return (length + 2 * padding - size) // stride + 1


def conv_pool(
    weights: Weights,
    layout: Layout,
    name: str,
    inputs: Float32[np.ndarray, "members channels height width"],
    stride: int,
) -> Float32[np.ndarray, "members out_channels pooled_height pooled_width"]:
    """Each member's valid convolution followed by 2x2 max pooling (stride 2, an odd last row or column dropped).

    The kernels' layout shape is (out_channels, channels, size, size). `inputs` may be any strided view. Apply tanh
    afterwards: tanh is monotone, so that the order matters only for rounding, and a quarter of the tanhs is enough.
    """
    out_channels, channels, size = _read_kernel_shape(layout, name)
    check_weights(weights, layout, inputs)
    height, width = (compute_pooled_size(length, size, stride) for length in inputs.shape[2:])
    if inputs.shape[1] != channels or min(height, width) < 1:
        raise ValueError(
            f"{name}: got (channels, height, width) {inputs.shape[1:]}, needs {channels} channels and a height and "
            f"width of at least {size + stride}"
        )
    outputs = np.empty((len(inputs), out_channels, height, width), np.float32)
    if isinstance(weights, LowRankWeights):  # kernels are small: make each member's own
        own = kernels.low_rank.make_member_arrays(weights, layout, name).reshape(len(inputs), -1)
        kernels.convolution.conv_pool_kernel(own, 0, inputs, size, stride, outputs)
    else:
        kernels.convolution.conv_pool_kernel(weights, layout.slices[name].start, inputs, size, stride, outputs)
    return outputs


def conv(
    weights: Weights,
    layout: Layout,
    name: str,
    inputs: Float32[np.ndarray, "members channels height width"],
    *,
    stride: int,
    padding: int,
    bias: str | None = None,
) -> Float32[np.ndarray, "members out_channels out_height out_width"]:
    """Each member's convolution with `padding` zeros around the image, plus the vector `bias`.

    The kernels' layout shape is (out_channels, channels, size, size). `inputs` may be any strided view.
    """
    out_channels, channels, size = _read_kernel_shape(layout, name)
    check_weights(weights, layout, inputs)
    height, width = (compute_conv_size(length, size, stride, padding) for length in inputs.shape[2:])
    if inputs.shape[1] != channels or min(height, width) < 1:
        raise ValueError(
            f"{name}: got (channels, height, width) {inputs.shape[1:]}, needs {channels} channels and a height and "
            f"width of at least {size - 2 * padding}"
        )
    if isinstance(weights, LowRankWeights):
        names = [each for each in (name, bias) if each]
        shared = np.concatenate([weights.center[layout.slices[each]] for each in names])
        rows, slices = weights.noise, weights.factors.slices
    else:
        shared = np.zeros(prod(layout.shapes[name]) + out_channels, np.float32)
        rows, slices = weights, layout.slices
    start, bias_start = slices[name].start, _ABSENT if bias is None else slices[bias].start
    outputs = np.empty((len(inputs), out_channels, height, width), np.float32)
    images = np.ascontiguousarray(inputs)
    kernels.convolution.conv_kernel(rows, start, bias_start, shared, images, size, stride, padding, outputs)
    return outputs


def _read_kernel_shape(layout: Layout, name: str) -> tuple[int, int, int]:
    """Output channels, input channels and size of these kernels; ValueError unless they are square."""
    out_channels, channels, height, width = layout.shapes[name]
    if height != width:
        raise ValueError(f"{name}: kernels must be square, got {height} x {width}")
    return out_channels, channels, height


def read_vector(weights: Weights, layout: Layout, name: str) -> Float32[np.ndarray, "members size"]:
    """Each member's vector `name`. The caller must not change it."""
    if isinstance(weights, LowRankWeights):
        return kernels.low_rank.make_member_arrays(weights, layout, name)
    return layout.view(weights, name)


def compute_dense_shapes(sizes: Sequence[int], *, bias: bool) -> dict[str, tuple[int, ...]]:
    """Shapes of the fully connected layers between `sizes`, inputs first: dense1, dense1_bias, dense2, ..."""
    shapes: dict[str, tuple[int, ...]] = {}
    for number, (num_inputs, num_outputs) in enumerate(pairwise(sizes), start=1):
        shapes[f"dense{number}"] = (num_outputs, num_inputs)
        if bias:
            shapes[f"dense{number}_bias"] = (num_outputs,)
    return shapes


def dense(
    weights: Weights, layout: Layout, inputs: Float32[np.ndarray, "members in"], activation: str = "tanh"
) -> Float32[np.ndarray, "members out"]:
    """Outputs of the layers of `compute_dense_shapes`, with an activation of `ACTIVATIONS` between them."""
    names, places = _find_dense_layers(tuple(layout.shapes.items()))
    if isinstance(weights, LowRankWeights):
        outputs = inputs
        for number, (name, bias) in enumerate(names):
            if number:
                apply_activation(activation, outputs)
            outputs = linear(weights, layout, name, outputs, bias)
        return outputs
    _check_arguments(weights, layout, names[0][0], inputs)
    outputs = np.empty((len(inputs), places[-1, 2]), np.float32)
    kernels.linear.dense_kernel(weights, places, ACTIVATIONS[activation], inputs, outputs)
    return outputs


@cache
def _find_dense_layers(
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
) -> tuple[list[tuple[str, str | None]], Int64[np.ndarray, "layers 3"]]:
    """Names of the matrices and biases of dense1, dense2, ..., and their places as `dense_kernel` takes them."""
    layout = Layout(dict(shapes))
    names: list[tuple[str, str | None]] = []
    places: list[tuple[int, int, int]] = []
    while (name := f"dense{len(names) + 1}") in layout.shapes:
        num_outputs, num_inputs = layout.shapes[name]
        if places and num_inputs != (before := places[-1][2]):
            raise ValueError(f"{name}: its matrix takes inputs of size {num_inputs}, the layer before has {before}")
        bias = f"{name}_bias" if f"{name}_bias" in layout.shapes else None
        names.append((name, bias))
        places.append((layout.slices[name].start, layout.slices[bias].start if bias else _ABSENT, num_outputs))
    if not names:
        raise ValueError(f"the layout has no dense1, only {', '.join(layout.shapes)}")
    return names, np.array(places, np.int64)


def make_rows(weights: Weights, layout: Layout) -> Rows:
    """Every member's row of parameters: the weights themselves, or new rows made from low-rank weights."""
    return kernels.low_rank.make_member_rows(weights, layout) if isinstance(weights, LowRankWeights) else weights


def _check_arguments(weights: Weights, layout: Layout, name: str, inputs: np.ndarray) -> None:
    """Raises ValueError for weights or inputs with which the matrix `name` cannot be multiplied."""
    check_weights(weights, layout, inputs)
    num_inputs = layout.shapes[name][1]
    if inputs.shape[1] != num_inputs:
        raise ValueError(f"{name}: got inputs of size {inputs.shape[1]}, its matrix takes {num_inputs}")
    if inputs.dtype != np.float32 or not inputs.flags.c_contiguous:
        raise ValueError(f"{name}: inputs must be contiguous float32, got {inputs.dtype} of strides {inputs.strides}")


def check_weights(weights: Weights, layout: Layout, inputs: np.ndarray) -> None:
    """Raises ValueError for weights of a wrong shape or type: kernels do not check bounds."""
    if isinstance(weights, LowRankWeights):
        _check_low_rank(weights, layout, inputs)
        return
    if weights.dtype != np.float32 or weights.strides[1] != weights.itemsize:
        raise ValueError(
            f"weights: rows must be contiguous float32, got {weights.dtype} with strides {weights.strides}"
        )
    if weights.shape != (len(inputs), layout.num_params):
        expected = (len(inputs), layout.num_params)
        raise ValueError(f"weights: got shape {weights.shape}, expected (members, params) = {expected}")


def _check_low_rank(weights: LowRankWeights, layout: Layout, inputs: np.ndarray) -> None:
    for what, array in (("center", weights.center), ("noise", weights.noise)):
        if array.dtype != np.float32 or not array.flags.c_contiguous:
            raise ValueError(
                f"weights: {what} must be contiguous float32, got {array.dtype} with strides {array.strides}"
            )
    shapes = weights.center.shape, weights.noise.shape
    expected = (layout.num_params,), (len(inputs), weights.factors.num_params)
    if shapes != expected:
        raise ValueError(f"weights: got center and noise of shapes {shapes}, expected {expected}")
