"""Recurrent cells: the arrays that they read, and one update each, which changes the state in place.

Equations, order of gates and the two bias vectors are those of `torch.nn.LSTMCell` and `torch.nn.GRUCell`, so that
weights can be exchanged unchanged. Only the sum of the two biases matters, except in the GRU's candidate. Matrices are
read through `hebbes.policies.layers.linear`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Layout, Weights
from hebbes.policies.activations import compute_tanh, sigmoid
from hebbes.policies.layers import linear

CellState: TypeAlias = Mapping[str, Float32[np.ndarray, "members units"]]
Inputs: TypeAlias = Float32[np.ndarray, "members in"]


@dataclass(frozen=True)
class Cell:
    """A kind of cell. Its output is `state["hidden"]`."""

    num_gates: int
    state_names: tuple[str, ...]
    """Names of the state's arrays (members, units), all zero when an episode begins."""
    update: Callable[[Weights, Layout, Inputs, CellState], None]

    def compute_shapes(self, num_inputs: int, num_units: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the cell's arrays, by name, in PyTorch's order. Each array holds the gates one after another."""
        rows = self.num_gates * num_units
        return {
            "cell_input": (rows, num_inputs),
            "cell_recurrent": (rows, num_units),
            "cell_input_bias": (rows,),
            "cell_recurrent_bias": (rows,),
        }


def _compute_gates(
    weights: Weights, layout: Layout, inputs: Inputs, hidden: Float32[np.ndarray, "members units"]
) -> tuple[Float32[np.ndarray, "members gates"], Float32[np.ndarray, "members gates"]]:
    """The contributions of the inputs and of the hidden state to the gates."""
    return (
        linear(weights, layout, "cell_input", inputs, "cell_input_bias"),
        linear(weights, layout, "cell_recurrent", hidden, "cell_recurrent_bias"),
    )


def _update_lstm(weights: Weights, layout: Layout, inputs: Inputs, state: CellState) -> None:
    from_inputs, from_hidden = _compute_gates(weights, layout, inputs, state["hidden"])
    i, f, g, o = np.split(from_inputs + from_hidden, 4, axis=1)
    cell = state["cell"]
    cell *= sigmoid(f)
    cell += sigmoid(i) * compute_tanh(g)
    np.multiply(sigmoid(o), compute_tanh(cell), out=state["hidden"])


def _update_gru(weights: Weights, layout: Layout, inputs: Inputs, state: CellState) -> None:
    from_inputs, from_hidden = _compute_gates(weights, layout, inputs, state["hidden"])
    (r_x, z_x, n_x), (r_h, z_h, n_h) = (np.split(gates, 3, axis=1) for gates in (from_inputs, from_hidden))
    n = compute_tanh(n_x + sigmoid(r_x + r_h) * n_h)
    hidden = state["hidden"]
    hidden -= n
    hidden *= sigmoid(z_x + z_h)
    hidden += n  # (1 - z) n + z h


LSTM_CELL = Cell(4, ("hidden", "cell"), _update_lstm)
"""Long short-term memory with a forget gate. Gates: i, f, g, o.

Hochreiter & Schmidhuber 1997; Gers, Schmidhuber & Cummins 2000.
"""
GRU_CELL = Cell(3, ("hidden",), _update_gru)
"""Gated recurrent unit. Gates: r, z, n (Cho et al. 2014, arXiv 1406.1078; r acts after the product, as in PyTorch)."""
