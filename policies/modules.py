"""Policies as ordinary trainable PyTorch modules: the only file of this layer that imports torch."""

import numpy as np
import torch
from jaxtyping import Float32
from torch import nn

from contracts.policy import Buffers
from policies.cnn import STRIDES, Cnn
from policies.linear import Linear
from policies.mlp import Mlp
from policies.static import StaticPolicy


class _Observations(nn.Module):
    """`policies.observations.normalized`, and images turned to channels first."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, policy: StaticPolicy, buffers: Buffers) -> None:
        super().__init__()
        mean = buffers.get("observation_mean", np.zeros(policy.observation_shape))
        std = buffers.get("observation_std", np.ones(policy.observation_shape))
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32))
        self.clip = 10.0 if "observation_mean" in buffers else torch.inf
        self.is_image = isinstance(policy, Cnn)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        scaled = ((observations.float() - self.mean) / self.std).clamp(-self.clip, self.clip)
        return scaled.movedim(-1, 1) if self.is_image else scaled.flatten(1)


def as_module(policy: StaticPolicy, row: Float32[np.ndarray, " params"], buffers: Buffers) -> nn.Sequential:
    """A module that maps observations (batch, *observation_shape) to the outputs of `policy.act` with weights `row`.

    Its parameters are copies, in the order of the layout: `torch.nn.utils.parameters_to_vector` gives the row back.
    """
    if not isinstance(policy, Mlp | Linear | Cnn):
        raise TypeError(f"as_module: got {type(policy).__name__}, takes Mlp, Linear and Cnn, whose weights are fixed")
    layout = policy.layout
    strides = iter(STRIDES)
    stages: list[nn.Module] = [_Observations(policy, buffers)]
    for name, shape in layout.shapes.items():
        if len(shape) == 4:
            stages += [nn.Conv2d(shape[1], shape[0], shape[2], next(strides), bias=False), nn.MaxPool2d(2), nn.Tanh()]
        elif len(shape) == 2:
            has_bias = f"{name}_bias" in layout.shapes
            stages += [nn.Flatten(), nn.Linear(shape[1], shape[0], bias=has_bias), nn.Tanh()]
    module = nn.Sequential(*stages[:-1])  # the output is linear
    nn.utils.vector_to_parameters(torch.tensor(row), module.parameters())
    return module
