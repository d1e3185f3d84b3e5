"""LSTM policy: fully connected layers, a long short-term memory, linear output, all with biases.

Hochreiter & Schmidhuber 1997, "Long Short-Term Memory", with the forget gate of Gers, Schmidhuber & Cummins 2000, as
`torch.nn.LSTMCell` has it.
"""

from dataclasses import dataclass
from typing import ClassVar

from hebbes.policies.recurrent import DenseRecurrentPolicy
from hebbes.policies.recurrent_cells import LSTM_CELL, Cell


@dataclass(frozen=True)
class LSTM(DenseRecurrentPolicy):
    """An LSTM of `recurrent_size` cells, whose memory lasts for one episode."""

    cell: ClassVar[Cell] = LSTM_CELL
