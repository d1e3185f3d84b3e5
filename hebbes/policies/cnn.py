"""Convolutional network for images: the static network of arXiv 2007.02686 (Najarro & Risi 2020), without biases.

    conv 3x3 stride 1, 6 channels -> max pool 2x2 -> tanh
    conv 5x5 stride 2, 8 channels -> max pool 2x2 -> tanh
    fully connected, tanh on the hidden layers, linear output

Departures from the authors' code:
- An image enters as (channels, height, width), not (channels, width, height). Its size and number of channels are free.
- The search starts at Xavier uniform weights. Theirs starts as PyTorch draws its layers (`--initialization pytorch`),
  which is narrower: for color images of 84 x 84 pixels, a standard deviation of 0.111 instead of 0.157 for the first
  kernel, and of 0.0227 instead of 0.0508 for the first matrix.
- Virtual batch normalization (`hebbes.policies.virtual_batch`) is an option. It acts before the tanh of each
  convolution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float32, Shaped

from hebbes.contracts.option import option
from hebbes.contracts.policy import Buffers, Layout, State, Weights
from hebbes.policies.activations import apply_activation
from hebbes.policies.base import InitializedPolicy
from hebbes.policies.layers import compute_dense_shapes, compute_pooled_size, conv_pool, dense
from hebbes.policies.virtual_batch import (
    Convolution,
    Statistics,
    UsesVirtualBatch,
    apply_convolutions,
    compute_reference_statistics,
)

CHANNELS = (6, 8)
KERNEL_SIZES = (3, 5)
STRIDES = (1, 2)
LEAST_SIZE = 16  # 16 -> conv 14 -> pool 7 -> conv 2 -> pool 1


def can_convolve(observation_shape: tuple[int, ...]) -> bool:
    """Whether observations are images (height, width, channels) that are large enough for both convolutions."""
    return len(observation_shape) == 3 and min(observation_shape[:2]) >= LEAST_SIZE


def compute_conv_shapes(observation_shape: tuple[int, ...]) -> tuple[dict[str, tuple[int, ...]], int]:
    """Shapes of the two kernels for observations (height, width, channels), and the number of features they produce."""
    if not can_convolve(observation_shape):
        raise ValueError(
            f"observation_shape: got {observation_shape}, convolutions take images (height, width, channels) of at "
            f"least {LEAST_SIZE} x {LEAST_SIZE} pixels; --policy mlp takes any observations"
        )
    height, width, channels = observation_shape
    shapes: dict[str, tuple[int, ...]] = {}
    for number, (out_channels, size, stride) in enumerate(zip(CHANNELS, KERNEL_SIZES, STRIDES, strict=True), 1):
        shapes[f"conv{number}"] = (out_channels, channels, size, size)
        height, width = (compute_pooled_size(length, size, stride) for length in (height, width))
        channels = out_channels
    return shapes, channels * height * width


def make_convolutions(layout: Layout) -> list[Convolution]:
    """The two convolutions with their pooling, each with the tanh after it."""

    def make_convolution(name: str, stride: int) -> Convolution:
        return (  # lambdas: the annotations of functions would be evaluated in every env step
            lambda weights, maps: conv_pool(weights, layout, name, maps, stride),
            lambda weights, maps: apply_activation("tanh", maps),
        )

    return [make_convolution(f"conv{number}", stride) for number, stride in enumerate(STRIDES, 1)]


def compute_conv_features(
    weights: Weights,
    layout: Layout,
    inputs: Float32[np.ndarray, "members height width channels"],
    statistics: Sequence[Statistics] | None = None,
) -> Float32[np.ndarray, "members features"]:
    """Features of the images after both convolutions, in the order (channels, height, width)."""
    maps = apply_convolutions(weights, make_convolutions(layout), inputs.transpose(0, 3, 1, 2), statistics)
    return maps.reshape(len(maps), -1)


@dataclass(frozen=True)
class CNN(UsesVirtualBatch, InitializedPolicy):
    """Takes observations (height, width, channels) of pixels in [0, 1], at least 16 high and wide."""

    hidden_sizes: tuple[int, ...] = option((128, 64), "units of each hidden layer", range=">= 1")

    def __post_init__(self) -> None:
        super().__post_init__()
        compute_conv_shapes(self.observation_shape)  # refuses observations that are not images

    @cached_property
    def layout(self) -> Layout:
        """The two kernels, then the matrices of the dense layers."""
        kernels, features = compute_conv_shapes(self.observation_shape)
        return Layout(kernels | compute_dense_shapes((features, *self.hidden_sizes, self.num_outputs), bias=False))

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """The statistics of the reference batch, constant within an episode. None without a reference batch."""
        if not self.virtual_batch:
            return None
        frames = self.read_reference_frames(buffers)
        return {"statistics": compute_reference_statistics(weights, make_convolutions(self.layout), frames)}

    def act(
        self,
        weights: Weights,
        observations: Shaped[np.ndarray, "members ..."],
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        buffers: Buffers,
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs. Rewards are ignored. A pixel that is not finite gives NaN, unless pooling drops it."""
        return self.forward(weights, self.prepare_inputs(observations, buffers), state)

    def forward(
        self, weights: Weights, inputs: Float32[np.ndarray, "members height width channels"], state: State = None
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs."""
        statistics = state["statistics"] if state else None
        return dense(weights, self.layout, compute_conv_features(weights, self.layout, inputs, statistics))
