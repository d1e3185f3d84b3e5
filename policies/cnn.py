"""Convolutional network for images: the static network of arXiv 2007.02686 (Najarro & Risi 2020), without biases.

    conv 3x3 stride 1, 6 channels -> max pool 2x2 -> tanh
    conv 5x5 stride 2, 8 channels -> max pool 2x2 -> tanh
    fully connected, tanh on the hidden layers, linear output

Departures: an image enters as (channels, height, width), not (channels, width, height), and any size and number of
channels is taken.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float32

from contracts.policy import Layout, Weights
from policies.convolution import pooled_size
from policies.layers import conv_pool, dense, dense_shapes
from policies.static import StaticPolicy, positive_sizes

CHANNELS = (6, 8)
KERNEL_SIZES = (3, 5)
STRIDES = (1, 2)
LEAST_SIZE = 16  # 16 -> conv 14 -> pool 7 -> conv 2 -> pool 1


def conv_shapes(observation_shape: tuple[int, ...]) -> tuple[dict[str, tuple[int, ...]], int]:
    """Shapes of the two kernels for observations (height, width, channels), and how many features they leave."""
    if len(observation_shape) != 3 or min(observation_shape[:2]) < LEAST_SIZE:
        raise ValueError(
            f"observation_shape: got {observation_shape}, convolutions take images (height, width, channels) of at "
            f"least {LEAST_SIZE} x {LEAST_SIZE} pixels"
        )
    height, width, channels = observation_shape
    shapes: dict[str, tuple[int, ...]] = {}
    for number, (out_channels, size, stride) in enumerate(zip(CHANNELS, KERNEL_SIZES, STRIDES, strict=True), 1):
        shapes[f"conv{number}"] = (out_channels, channels, size, size)
        channels, height, width = out_channels, pooled_size(height, size, stride), pooled_size(width, size, stride)
    return shapes, channels * height * width


def conv_features(
    weights: Weights, layout: Layout, inputs: Float32[np.ndarray, "members height width channels"]
) -> Float32[np.ndarray, "members features"]:
    """What the kernels of a layout see in an image, in the order (channels, height, width)."""
    maps = inputs.transpose(0, 3, 1, 2)
    for number, stride in enumerate(STRIDES, 1):
        maps = conv_pool(weights, layout, f"conv{number}", maps, stride)
        np.tanh(maps, out=maps)
    return maps.reshape(len(maps), -1)


@dataclass(frozen=True)
class Cnn(StaticPolicy):
    """Takes observations (height, width, channels) of pixels in [0, 1], at least 16 high and wide."""

    hidden_sizes: tuple[int, ...] = (128, 64)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "hidden_sizes", positive_sizes("hidden_sizes", self.hidden_sizes))
        conv_shapes(self.observation_shape)  # refuses what is no image

    @cached_property
    def layout(self) -> Layout:
        """Two kernels, then the matrices."""
        kernels, features = conv_shapes(self.observation_shape)
        return Layout(kernels | dense_shapes((features, *self.hidden_sizes, self.num_outputs), bias=False))

    def forward(
        self, weights: Weights, inputs: Float32[np.ndarray, "members height width channels"]
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs."""
        return dense(weights, self.layout, conv_features(weights, self.layout, inputs))
