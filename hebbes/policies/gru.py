"""GRU policy: fully connected layers, gated recurrent units, linear output, all with biases.

Cho et al. 2014, arXiv 1406.1078, in the form of `torch.nn.GRUCell`, whose reset gate acts on the product.
"""

from dataclasses import dataclass
from typing import ClassVar

from hebbes.policies.recurrent_cells import GRU_CELL, Cell
from hebbes.policies.recurrent import DenseRecurrentPolicy


@dataclass(frozen=True)
class GRU(DenseRecurrentPolicy):
    """Remembers within an episode by `recurrent_size` units."""

    cell: ClassVar[Cell] = GRU_CELL
