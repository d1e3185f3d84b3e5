"""Fully connected networks whose gradients are written out, for the few small products of a gradient step.

Several networks of one shape are computed at once, in one batched product a layer. Each has a row of parameters in the
order of `hebbes.policies.mlp.MLP`, so that an actor's row is the row of a policy. Autograd, with its tape and its many
small operations, is not used: a layer's gradient follows from its output alone,

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


class Workspace:
    """Arrays that one kind of pass writes in every step. Fresh memory would cost more than writing to it."""

    def __init__(self) -> None:
        self._arrays: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """The array of this name, of any content."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape:
            array = self._arrays[name] = torch.empty(shape)
        return array


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

    def forward(
        self, parameters: Parameters, inputs: Float32[Tensor, "networks batch in"], workspace: Workspace
    ) -> list[Tensor]:
        """The outputs of each layer, (networks, batch, units), the last layer's last. They are in the workspace."""
        outputs: list[Tensor] = []
        for number, (weights, biases) in enumerate(parameters.layers, start=1):
            sums = workspace.take(f"outputs{number}", *inputs.shape[:2], weights.shape[1])
            inputs = torch.baddbmm(biases, inputs, weights.transpose(1, 2), out=sums)
            self._find_activation(number).apply(inputs)
            outputs.append(inputs)
        return outputs

    def backward(
        self,
        parameters: Parameters,
        inputs: Float32[Tensor, "networks batch in"],
        outputs: Sequence[Tensor],
        gradient: Float32[Tensor, "networks batch out"],
        workspace: Workspace,
        parameter_gradient: Parameters | None = None,
        *,
        needs_input_gradient: bool = False,
    ) -> Float32[Tensor, "networks batch in"] | None:
        """The gradient with respect to the inputs, if it is needed.

        Args:
            outputs: what `forward` returned for these inputs.
            gradient: of the loss with respect to the last outputs. It is overwritten.
            parameter_gradient: receives the gradient with respect to the parameters, if given.
        """
        for number in range(len(parameters.layers), 0, -1):
            self._find_activation(number).differentiate(gradient, outputs[number - 1])
            if parameter_gradient is not None:
                weight_gradient, bias_gradient = parameter_gradient.layers[number - 1]
                torch.bmm(gradient.transpose(1, 2), outputs[number - 2] if number > 1 else inputs, out=weight_gradient)
                torch.sum(gradient, 1, keepdim=True, out=bias_gradient)
            if number == 1 and not needs_input_gradient:
                return None
            weights = parameters.layers[number - 1][0]
            inner = workspace.take(f"gradient{number}", *gradient.shape[:2], weights.shape[2])
            gradient = torch.bmm(gradient, weights, out=inner)
        return gradient

    def _find_activation(self, number: int) -> Activation:
        return ACTIVATIONS[self.hidden if number < len(self.sizes) - 1 else self.output]
