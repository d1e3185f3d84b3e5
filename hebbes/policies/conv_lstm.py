"""Convolutional LSTM: the Atari network of pytorch-es (atgambardella/pytorch-es), after the A3C code of I. Kostrikov.

    four times: conv 3x3 stride 2 padding 1, 32 channels -> SELU
    LSTM of 256 cells (`hebbes.policies.recurrent_cells`), whose state is zero at the start of an episode
    linear output

With observations of 42 x 42 x 1, as `--atari_42` makes them, and 6 actions it has 588,710 parameters.

Departures: The size of images and their number of channels are free. Matrices and kernels start Xavier uniform and
biases at zero, theirs as PyTorch draws them. Virtual batch normalization (`hebbes.policies.virtual_batch`), before each
SELU, is an option.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Buffers, State, Weights
from hebbes.policies.activations import apply_activation
from hebbes.policies.layers import compute_conv_size, conv, read_vector
from hebbes.policies.recurrent import RecurrentPolicy
from hebbes.policies.recurrent_cells import LSTM_CELL, Cell
from hebbes.policies.virtual_batch import (
    Convolution,
    Maps,
    UsesVirtualBatch,
    apply_convolutions,
    compute_reference_statistics,
)

NUM_LAYERS = 4
CHANNELS = 32
KERNEL_SIZE, STRIDE, PADDING = 3, 2, 1
NUM_CELLS = 256


@dataclass(frozen=True)
class ConvLSTM(UsesVirtualBatch, RecurrentPolicy):
    """Takes observations (height, width, channels). Its memory lasts for one episode."""

    cell: ClassVar[Cell] = LSTM_CELL
    num_units: ClassVar[int] = NUM_CELLS

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.observation_shape) != 3:
            raise ValueError(
                f"observation_shape: got {self.observation_shape}, conv_lstm takes images (height, width, channels), "
                "such as the 42 x 42 x 1 of --atari_42"
            )

    @cached_property
    def feature_shapes(self) -> tuple[dict[str, tuple[int, ...]], int]:
        """Kernels and biases of the convolutions, and the number of features they produce."""
        height, width, channels = self.observation_shape
        shapes: dict[str, tuple[int, ...]] = {}
        for number in range(1, NUM_LAYERS + 1):
            shapes[f"conv{number}"] = (CHANNELS, channels, KERNEL_SIZE, KERNEL_SIZE)
            shapes[f"conv{number}_bias"] = (CHANNELS,)
            height, width = (compute_conv_size(length, KERNEL_SIZE, STRIDE, PADDING) for length in (height, width))
            channels = CHANNELS
        return shapes, channels * height * width

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """Zeros for the cell, and the statistics of the reference batch if there is one."""
        state = super().initial_state(weights, rngs, buffers)
        if self.virtual_batch:
            frames = self.read_reference_frames(buffers)
            state["statistics"] = compute_reference_statistics(weights, self._make_convolutions(), frames)
        return state

    def compute_features(
        self, weights: Weights, inputs: Float32[np.ndarray, "members height width channels"], state: State
    ) -> Float32[np.ndarray, "members features"]:
        """Features of the images after all convolutions, in the order (channels, height, width)."""
        maps = apply_convolutions(
            weights, self._make_convolutions(), inputs.transpose(0, 3, 1, 2), state.get("statistics")
        )
        return maps.reshape(len(maps), -1)

    def _make_convolutions(self) -> list[Convolution]:
        """Each convolution with the SELU after it. With virtual batch normalization, biases are added between the two.

        Made at each call, because a policy that stores functions cannot be sent to a worker process.
        """

        def make_convolution(name: str) -> Convolution:
            bias, layout = f"{name}_bias", self.layout
            bias_before = None if self.virtual_batch else bias

            def activate(weights: Weights, maps: Maps) -> None:
                if self.virtual_batch:
                    maps += read_vector(weights, layout, bias)[:, :, np.newaxis, np.newaxis]
                apply_activation("selu", maps)

            sizes = {"stride": STRIDE, "padding": PADDING}
            return lambda weights, maps: conv(weights, layout, name, maps, **sizes, bias=bias_before), activate

        return [make_convolution(f"conv{number}") for number in range(1, NUM_LAYERS + 1)]
