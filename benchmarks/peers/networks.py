"""Networks and simulators of the peers that bring none of their own for an environment.

Images are shrunk to 84 x 84 pixels, as the reference does. No other peer has published a network for images, so they
take the reference's.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import cv2
import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import ResizeObservation
from jaxtyping import Float
from torch import Tensor, nn

SIZE = (84, 84)
IMAGE_HIDDEN = (128, 64)
"""Units of the hidden layers behind the convolutions of the reference's network."""


def make_env(environment: str) -> gymnasium.Env:
    """Gymnasium's environment, with small images if it has images."""
    env = gymnasium.make(environment)
    return ResizeObservation(env, SIZE) if has_images(env) else env


def has_images(env: gymnasium.Env) -> bool:
    """Whether its observations are images."""
    return len(env.observation_space.shape or ()) == 3


def prepare(observation: np.ndarray) -> Tensor:
    """An observation of Gymnasium's environment as the networks take it."""
    small = cv2.resize(observation, SIZE, interpolation=cv2.INTER_AREA) if observation.ndim == 3 else observation
    return torch.as_tensor(small, dtype=torch.float32)


def count_outputs(env: gymnasium.Env) -> int:
    """One for each discrete action, or one for each number of an action."""
    space = env.action_space
    assert isinstance(space, Discrete | Box)
    return int(space.n) if isinstance(space, Discrete) else space.shape[0]


def list_hidden_sizes(environment: str, hidden_sizes: Sequence[int]) -> list[int]:
    """Units of each hidden layer of `make_network`, without convolutions."""
    return [*IMAGE_HIDDEN] if has_images(gymnasium.make(environment)) else [*hidden_sizes]


def make_network(env: gymnasium.Env, hidden_sizes: Sequence[int], *, bias: bool) -> nn.Module:
    """For images the reference's network, else an MLP with tanh after each hidden layer, both as PyTorch draws them."""
    if has_images(env):
        return ImageNetwork(count_outputs(env))
    shape: Any = env.observation_space.shape
    sizes = [*shape, *hidden_sizes, count_outputs(env)]
    layers: list[nn.Module] = []
    for size, next_size in pairwise(sizes):
        layers += [nn.Linear(size, next_size, bias=bias), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class ImageNetwork(nn.Module):
    """The reference's convolutional network (Najarro & Risi 2020), for an image of 84 x 84 pixels in three colors."""

    def __init__(self, num_outputs: int):
        super().__init__()
        pool = nn.MaxPool2d(2, 2)
        first, second = nn.Conv2d(3, 6, 3, bias=False), nn.Conv2d(6, 8, 5, stride=2, bias=False)
        self.convolutions = nn.Sequential(first, nn.Tanh(), pool, second, nn.Tanh(), pool)
        dense = [
            nn.Linear(size, next_size, bias=False) for size, next_size in pairwise((648, *IMAGE_HIDDEN, num_outputs))
        ]
        self.dense = nn.Sequential(dense[0], nn.Tanh(), dense[1], nn.Tanh(), dense[2])

    def forward(self, image: Float[Tensor, "84 84 3"]) -> Float[Tensor, " outputs"]:
        """The outputs for one image, whose numbers are those of bytes."""
        return self.dense(self.convolutions(image.movedim(-1, -3) / 255).flatten(-3))
