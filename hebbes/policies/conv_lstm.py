"""Convolutional LSTM: the Atari network of pytorch-es (atgambardella/pytorch-es), after the A3C code of I. Kostrikov.

    four times: conv 3x3 stride 2 padding 1, 32 channels -> SELU
    LSTM of 256 cells (`hebbes.policies.recurrent_cells`), whose state is zero at the start of an episode
    linear output

With observations of 42 x 42 x 1, as `--atari_42` makes them, and 6 actions it has 588,710 parameters. Departures: any
size and number of channels is taken; matrices and kernels start Xavier uniform and biases at zero, theirs as PyTorch
draws them; virtual batch normalisation (`hebbes.policies.virtual_batch`), before each SELU, is an option.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Buffers, State, Weights
from hebbes.policies.kernels.activations import selu
from hebbes.policies.recurrent_cells import LSTM_CELL, Cell
from hebbes.policies.kernels.convolution import padded_size
from hebbes.policies.layers import conv, vector
from hebbes.policies.recurrent import RecurrentPolicy
from hebbes.policies.virtual_batch import Convolution, check_virtual_batch, convolved, reference_frames, reference_statistics

NUM_LAYERS = 4
CHANNELS = 32
KERNEL_SIZE, STRIDE, PADDING = 3, 2, 1
NUM_CELLS = 256


@dataclass(frozen=True)
class ConvLSTM(RecurrentPolicy):
    """Takes observations (height, width, channels), and remembers within an episode."""

    cell: ClassVar[Cell] = LSTM_CELL
    num_units: ClassVar[int] = NUM_CELLS

    virtual_batch: int = 0
    """Frames of the reference batch, `buffers["virtual_batch"]`, whose statistics normalise; 0 for no normalisation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.observation_shape) != 3:
            raise ValueError(
                f"observation_shape: got {self.observation_shape}, conv_lstm takes images (height, width, channels), "
                "such as the 42 x 42 x 1 of --atari_42"
            )
        check_virtual_batch(self.virtual_batch)

    @cached_property
    def feature_shapes(self) -> tuple[dict[str, tuple[int, ...]], int]:
        """Kernels and biases of the convolutions."""
        height, width, channels = self.observation_shape
        shapes: dict[str, tuple[int, ...]] = {}
        for number in range(1, NUM_LAYERS + 1):
            shapes[f"conv{number}"] = (CHANNELS, channels, KERNEL_SIZE, KERNEL_SIZE)
            shapes[f"conv{number}_bias"] = (CHANNELS,)
            height, width = (padded_size(length, KERNEL_SIZE, STRIDE, PADDING) for length in (height, width))
            channels = CHANNELS
        return shapes, channels * height * width

    def check_buffers(self, buffers: Buffers) -> None:
        """ValueError for buffers without the reference batch, if there is to be one."""
        if self.virtual_batch:
            reference_frames(self, self.virtual_batch, buffers)

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """Zeros, and the statistics of the reference batch if there is one."""
        state = super().initial_state(weights, rngs, buffers)
        if self.virtual_batch:
            frames = reference_frames(self, self.virtual_batch, buffers)
            state["statistics"] = reference_statistics(weights, self._convolutions(), frames)
        return state

    def features(
        self, weights: Weights, inputs: Float32[np.ndarray, "members height width channels"], state: State
    ) -> Float32[np.ndarray, "members features"]:
        """What the convolutions see, in the order (channels, height, width)."""
        maps = convolved(weights, self._convolutions(), inputs.transpose(0, 3, 1, 2), state.get("statistics"))
        return maps.reshape(len(maps), -1)

    def _convolutions(self) -> list[Convolution]:
        """Each convolution, with the SELU after it; with a reference batch the biases come between the two.

        Made when needed: a policy that kept functions could not be sent to a worker process.
        """

        def convolution(name: str) -> Convolution:
            bias, layout = f"{name}_bias", self.layout
            bias_before = None if self.virtual_batch else bias

            def activate(weights: Weights, maps: Float32[np.ndarray, "members channels height width"]) -> None:
                if self.virtual_batch:
                    maps += vector(weights, layout, bias)[:, :, np.newaxis, np.newaxis]
                selu(maps)

            return lambda weights, maps: conv(weights, layout, name, maps, STRIDE, PADDING, bias_before), activate

        return [convolution(f"conv{number}") for number in range(1, NUM_LAYERS + 1)]
