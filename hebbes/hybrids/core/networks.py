"""Fully connected networks whose gradients are written out, for the few small products of a gradient step.

Several networks of one shape may be computed at once, in one batched product a layer. Each has a row of parameters in
the order of `hebbes.policies.mlp.MLP`, so that an actor's row is the row of a policy. Autograd, with its tape and its
many small operations, is not used: a layer's gradient follows from its output alone,

    dL/dW = d^T x,  dL/db = sum d,  dL/dx = d W,  with d = dL/dy f'(y).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import torch
from jaxtyping import Float32
from torch import Tensor

LEAK = 0.01
"""Slope of the leaky ReLU below zero, the default of PyTorch."""

Activate: TypeAlias = Callable[[Tensor], object]
Differentiate: TypeAlias = Callable[[Tensor, Tensor], object]
_ATEN = torch.ops.aten
_multiply_by_onednn = torch.ops.mkldnn._linear_pointwise.default if torch.backends.mkldnn.is_available() else None


@dataclass(frozen=True)
class Activation:
    """An activation function. Both calls work in place."""

    apply: Activate
    """Turns sums into outputs."""
    differentiate: Differentiate
    """Multiplies a gradient (first argument) with the derivative at these outputs."""


ACTIVATIONS = {
    "linear": Activation(lambda values: None, lambda gradient, outputs: None),
    "relu": Activation(
        torch.relu_,
        lambda gradient, outputs: _ATEN.threshold_backward.grad_input(gradient, outputs, 0.0, grad_input=gradient),
    ),
    "leaky_relu": Activation(
        lambda values: torch.nn.functional.leaky_relu_(values, LEAK),
        lambda gradient, outputs: _ATEN.leaky_relu_backward.grad_input(
            gradient, outputs, LEAK, True, grad_input=gradient
        ),
    ),
    "tanh": Activation(
        torch.tanh_,
        lambda gradient, outputs: _ATEN.tanh_backward.grad_input(gradient, outputs, grad_input=gradient),
    ),
}


class Parameters:
    """Rows of parameters, one a network, and views of them."""

    def __init__(self, rows: Float32[Tensor, "networks params"], sizes: Sequence[int]):
        self.rows = rows
        self.layers: list[tuple[Tensor, Tensor]] = []
        """For each layer, weights (networks, out, in) and biases (networks, 1, out)."""
        start = 0
        for num_inputs, num_outputs in pairwise(sizes):
            middle, stop = start + num_outputs * num_inputs, start + num_outputs * (num_inputs + 1)
            weights = rows[:, start:middle].view(len(rows), num_outputs, num_inputs)
            self.layers.append((weights, rows[:, middle:stop].unsqueeze(1)))
            start = stop


@dataclass(frozen=True)
class Network:
    """The shape of fully connected networks, and their passes forward and backward.

    Inputs have shape (networks, batch, in); the same inputs for all networks may be an expanded view.
    """

    sizes: tuple[int, ...]
    """Numbers of inputs, of the units of each hidden layer, and of outputs."""
    hidden: str
    """Activation of the hidden layers, a name in `ACTIVATIONS`."""
    output: str
    """Activation of the last layer."""

    @property
    def num_params(self) -> int:
        """Length of a row of parameters."""
        return sum(num_outputs * (num_inputs + 1) for num_inputs, num_outputs in pairwise(self.sizes))

    def make_parameters(self, rows: Float32[Tensor, "networks params"]) -> Parameters:
        """Views of these rows."""
        return Parameters(rows, self.sizes)

    def forward(self, parameters: Parameters, inputs: Float32[Tensor, "networks batch in"]) -> list[Tensor]:
        """The outputs of each layer, (networks, batch, units), the last layer's last."""
        outputs: list[Tensor] = []
        for number, (weights, biases) in enumerate(parameters.layers, start=1):
            inputs = multiply(inputs, weights.transpose(1, 2)).add_(biases)
            self._find_activation(number).apply(inputs)
            outputs.append(inputs)
        return outputs

    def backward(
        self,
        parameters: Parameters,
        inputs: Float32[Tensor, "networks batch in"],
        outputs: Sequence[Tensor],
        gradient: Float32[Tensor, "networks batch out"],
        *,
        parameter_gradient: Parameters | None = None,
        first_input: int | None = None,
    ) -> Float32[Tensor, "networks batch columns"] | None:
        """The gradient with respect to the inputs from the first one that is needed; None if that is None.

        Args:
            outputs: what `forward` returned for these inputs.
            gradient: of the loss with respect to the last outputs. It is overwritten.
            parameter_gradient: receives the gradient with respect to the parameters, if given.
        """
        for number in range(len(parameters.layers), 0, -1):
            self._find_activation(number).differentiate(gradient, outputs[number - 1])
            if parameter_gradient is not None:
                weight_gradient, bias_gradient = parameter_gradient.layers[number - 1]
                multiply(gradient.transpose(1, 2), outputs[number - 2] if number > 1 else inputs, weight_gradient)
                torch.sum(gradient, 1, keepdim=True, out=bias_gradient)
            weights = parameters.layers[number - 1][0]
            if number == 1:
                if first_input is None:
                    return None
                weights = weights[:, :, first_input:]
            gradient = multiply(gradient, weights)
        return gradient

    def _find_activation(self, number: int) -> Activation:
        return ACTIVATIONS[self.hidden if number < len(self.sizes) - 1 else self.output]


def multiply(
    left: Float32[Tensor, "networks rows inner"],
    right: Float32[Tensor, "networks inner columns"],
    out: Float32[Tensor, "networks rows columns"] | None = None,
) -> Float32[Tensor, "networks rows columns"]:
    """The product of each pair of matrices, written to `out` if that is given.

    On a CPU by oneDNN, which uses AVX-512 on AMD's processors too. MKL, behind `torch.bmm`, does so on Intel's only.
    The operation is the one that torch.compile calls for linear layers.
    """
    if left.device.type != "cpu" or _multiply_by_onednn is None:
        return torch.bmm(left, right, out=out)
    products = [
        _multiply_by_onednn(_pack(each_left), _pack(each_right).t(), None, "none", [], "")
        for each_left, each_right in zip(left, right, strict=True)
    ]
    found = products[0].unsqueeze(0) if len(products) == 1 else torch.stack(products)
    return found if out is None else out.copy_(found)


def _pack(matrix: Float32[Tensor, "rows columns"]) -> Float32[Tensor, "rows columns"]:
    """The matrix without gaps between its rows or columns. With gaps oneDNN is hundreds of times slower, or more."""
    return matrix if matrix.is_contiguous() or matrix.t().is_contiguous() else matrix.contiguous()
