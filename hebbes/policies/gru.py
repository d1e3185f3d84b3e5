"""GRU policy: fully connected layers, gated recurrent units, linear output, all with biases.

Cho et al. 2014, arXiv 1406.1078, in the form of `torch.nn.GRUCell`: the reset gate scales the product of the recurrent
matrix and the state, not the state.
"""

from dataclasses import dataclass
from typing import ClassVar

from hebbes.policies.recurrent import DenseRecurrentPolicy
from hebbes.policies.recurrent_cells import GRU_CELL, Cell


@dataclass(frozen=True)
class GRU(DenseRecurrentPolicy):
    """A GRU of `recurrent_size` units, whose memory lasts for one episode."""

    cell: ClassVar[Cell] = GRU_CELL
