"""Policies as ordinary trainable PyTorch modules. This is the only module of `hebbes.policies` that imports torch."""

from collections.abc import Mapping
from math import prod
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float32
from torch import nn

from hebbes.contracts.policy import Buffers
from hebbes.policies import conv_lstm, kernels
from hebbes.policies.base import SizedPolicy
from hebbes.policies.cnn import CNN, STRIDES
from hebbes.policies.conv_lstm import ConvLSTM
from hebbes.policies.linear import Linear
from hebbes.policies.mlp import MLP
from hebbes.policies.recurrent import DenseRecurrentPolicy, RecurrentPolicy
from hebbes.policies.recurrent_cells import LSTM_CELL

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "selu": nn.SELU, "relu": nn.ReLU}
ModuleState: TypeAlias = torch.Tensor | tuple[torch.Tensor, torch.Tensor]
"""State of `nn.GRUCell` (hidden) or `nn.LSTMCell` (hidden, cell), each of shape (batch, units)."""


class _ObservationNormalization(nn.Module):
    """`hebbes.policies.observation_normalization.normalize_observations`. Images get their channels first."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, policy: SizedPolicy, buffers: Buffers) -> None:
        super().__init__()
        mean = buffers.get("observation_mean", np.zeros(policy.observation_shape))
        std = buffers.get("observation_std", np.ones(policy.observation_shape))
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32))
        self.clip = float(kernels.observations.CLIP) if "observation_mean" in buffers else torch.inf
        self.is_image = isinstance(policy, CNN | ConvLSTM)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        observations = observations.float()
        scaled = ((observations - self.mean) / self.std).clamp(-self.clip, self.clip)
        scaled = scaled + 0 * observations  # infinity becomes NaN
        return scaled.movedim(-1, 1) if self.is_image else scaled.reshape(len(scaled), prod(scaled.shape[1:]))


class RecurrentModule(nn.Module):
    """Maps observations and the state to outputs and the next state. At the start of an episode the state is None."""

    def __init__(self, policy: RecurrentPolicy, buffers: Buffers) -> None:
        super().__init__()
        shapes, num_features = policy.feature_shapes
        self.features = nn.Sequential(
            _ObservationNormalization(policy, buffers), *_make_stages(policy, shapes), nn.Flatten()
        )
        kind = nn.LSTMCell if policy.cell is LSTM_CELL else nn.GRUCell
        self.cell = kind(num_features, policy.num_units)
        self.head = nn.Linear(policy.num_units, policy.num_outputs)

    def forward(self, observations: torch.Tensor, state: ModuleState | None = None) -> tuple[torch.Tensor, ModuleState]:
        """Outputs (batch, outputs) and the state after this env step."""
        state = self.cell(self.features(observations), state)
        return self.head(state[0] if isinstance(state, tuple) else state), state


def as_module(policy: SizedPolicy, row: Float32[np.ndarray, " params"], buffers: Buffers) -> nn.Module:
    """A module that maps observations (batch, *observation_shape) to the outputs of `policy.act` with weights `row`.

    For a recurrent policy it is a `RecurrentModule`, which takes and returns the state too. Its parameters are copies
    in the order of the layout: `torch.nn.utils.parameters_to_vector` gives the row back.

    Raises:
        TypeError: the policy is plastic, uses virtual batch normalization, or is of a user's class.
        ValueError: the row is not float32, or of another length than the policy's.
    """
    is_ours = type(policy).__module__.startswith("hebbes.")  # a user's subclass may be another network
    if not is_ours or not isinstance(policy, MLP | Linear | CNN | RecurrentPolicy):
        raise TypeError(
            f"as_module: got {type(policy).__name__}, takes MLP, Linear, Small, CNN, LSTM, GRU and ConvLSTM"
        )
    if isinstance(policy, CNN | ConvLSTM) and policy.virtual_batch:
        raise TypeError(f"as_module: got {type(policy).__name__} with virtual_batch {policy.virtual_batch}, takes 0")
    if row.dtype != np.float32 or row.shape != (policy.layout.num_params,):
        expected = (policy.layout.num_params,)
        raise ValueError(f"as_module: the row must be float32 of shape {expected}, got {row.dtype} of {row.shape}")
    if isinstance(policy, RecurrentPolicy):
        module: nn.Module = RecurrentModule(policy, buffers)
    else:
        stages = _make_stages(policy, policy.layout.shapes)
        module = nn.Sequential(_ObservationNormalization(policy, buffers), *stages[:-1])  # the output is linear
    nn.utils.vector_to_parameters(torch.tensor(row), module.parameters())
    return module


def _make_stages(policy: SizedPolicy, shapes: Mapping[str, tuple[int, ...]]) -> list[nn.Module]:
    """Layers with these shapes, each followed by its activation."""
    stages: list[nn.Module] = []
    strides = iter(STRIDES)
    fixed = "selu" if isinstance(policy, ConvLSTM) else "tanh"
    activation = ACTIVATIONS[policy.activation if isinstance(policy, MLP | DenseRecurrentPolicy) else fixed]
    for name, shape in shapes.items():
        has_bias = f"{name}_bias" in shapes
        if len(shape) == 2:
            stages += [nn.Flatten(), nn.Linear(shape[1], shape[0], bias=has_bias), activation()]
        elif len(shape) == 4 and isinstance(policy, ConvLSTM):
            padding, stride = conv_lstm.PADDING, conv_lstm.STRIDE
            stages += [nn.Conv2d(shape[1], shape[0], shape[2], stride, padding, bias=has_bias), activation()]
        elif len(shape) == 4:
            stages += [nn.Conv2d(shape[1], shape[0], shape[2], next(strides), bias=False), nn.MaxPool2d(2), nn.Tanh()]
    return stages
