"""Convolutional network for images: the static network of arXiv 2007.02686 (Najarro & Risi 2020), without biases.

    conv 3x3 stride 1, 6 channels -> max pool 2x2 -> tanh
    conv 5x5 stride 2, 8 channels -> max pool 2x2 -> tanh
    fully connected, tanh on the hidden layers, linear output

Departures: an image enters as (channels, height, width), not (channels, width, height), and any size and number of
channels is taken.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

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


@dataclass(frozen=True)
class Cnn(StaticPolicy):
    """Takes observations (height, width, channels) of pixels in [0, 1], at least 16 high and wide."""

    hidden_sizes: tuple[int, ...] = (128, 64)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "hidden_sizes", positive_sizes("hidden_sizes", self.hidden_sizes))
        if len(self.observation_shape) != 3 or min(self.observation_shape[:2]) < LEAST_SIZE:
            raise ValueError(
                f"observation_shape: got {self.observation_shape}, cnn takes images (height, width, channels) of at "
                f"least {LEAST_SIZE} x {LEAST_SIZE} pixels"
            )

    @cached_property
    def layout(self) -> Layout:
        """Two kernels, then the matrices."""
        height, width, channels = self.observation_shape
        shapes: dict[str, tuple[int, ...]] = {}
        for number, (out_channels, size, stride) in enumerate(zip(CHANNELS, KERNEL_SIZES, STRIDES, strict=True), 1):
            shapes[f"conv{number}"] = (out_channels, channels, size, size)
            channels, height, width = out_channels, pooled_size(height, size, stride), pooled_size(width, size, stride)
        features = prod((channels, height, width))
        return Layout(shapes | dense_shapes((features, *self.hidden_sizes, self.num_outputs), bias=False))

    def forward(
        self, weights: Weights, inputs: Float32[np.ndarray, "members height width channels"]
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs."""
        maps = inputs.transpose(0, 3, 1, 2)
        for number, stride in enumerate(STRIDES, 1):
            maps = conv_pool(weights, self.layout, f"conv{number}", maps, stride)
            np.tanh(maps, out=maps)
        return dense(weights, self.layout, maps.reshape(len(maps), -1))
