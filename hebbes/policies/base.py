"""Base classes of the policies: checks of their fields, preparation of observations, initial parameters."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod, sqrt

import numpy as np
from jaxtyping import Float32, Shaped

from hebbes.contracts.option import check_argument, check_options, option
from hebbes.contracts.policy import Buffers, Layout, State, Weights
from hebbes.policies.observation_normalization import normalize_observations


def xavier_uniform(layout: Layout, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
    """Each array uniform in +-sqrt(6 / (fan_in + fan_out)), vectors zero (Glorot & Bengio 2010, eq. 16).

    A kernel's fans count its pixels: fan_in = channels * size^2, fan_out = out_channels * size^2.
    """
    params = np.zeros(layout.num_params, np.float32)
    for name, shape in layout.shapes.items():
        if len(shape) > 1:
            bound = sqrt(6 / ((shape[0] + shape[1]) * prod(shape[2:])))
            params[layout.slices[name]] = rng.uniform(-bound, bound, prod(shape))
    return params


def pytorch_uniform(layout: Layout, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
    """Each array uniform in +-1 / sqrt(fan_in), as `torch.nn.Linear` and `torch.nn.Conv2d` start.

    The fan_in of a matrix or kernel is how many numbers one output reads. Biases use the fan_in of the array before.
    """
    params, bound = np.empty(layout.num_params, np.float32), 1.0
    for name, shape in layout.shapes.items():
        if len(shape) > 1:
            bound = 1 / sqrt(prod(shape[1:]))
        params[layout.slices[name]] = rng.uniform(-bound, bound, prod(shape))
    return params


INITIALIZATIONS: dict[str, Callable[[Layout, np.random.Generator], Float32[np.ndarray, " params"]]] = {
    "xavier": xavier_uniform,
    "pytorch": pytorch_uniform,
}


@dataclass(frozen=True)
class SizedPolicy:
    """A network with a given shape of observations and number of outputs."""

    observation_shape: tuple[int, ...]
    """Shape of one member's observation."""
    num_outputs: int

    def __post_init__(self) -> None:
        # a policy file gives lists where tuples were saved
        for name, hint in (("observation_shape", tuple[int, ...]), ("num_outputs", int)):
            object.__setattr__(self, name, check_argument(name, getattr(self, name), hint, range=">= 1"))
        check_options(self)

    def check_buffers(self, buffers: Buffers) -> None:
        """Accepts all buffers: statistics of observations are optional, and no other buffer is needed."""

    def prepare_inputs(
        self, observations: Shaped[np.ndarray, "members ..."], buffers: Buffers
    ) -> Float32[np.ndarray, "members ..."]:
        """Observations as the network takes them: float32, normalized, contiguous. Infinite values become NaN."""
        if observations.shape[1:] != self.observation_shape:
            raise ValueError(f"observations: got shape {observations.shape[1:]}, expected {self.observation_shape}")
        return normalize_observations(observations, buffers)


@dataclass(frozen=True)
class StaticPolicy(SizedPolicy, ABC):
    """A feedforward network. A subclass gives the layout and the forward pass."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Names and shapes of the searched parameters."""

    @abstractmethod
    def forward(
        self, weights: Weights, inputs: Float32[np.ndarray, "members ..."]
    ) -> Float32[np.ndarray, "members outputs"]:
        """Outputs for prepared inputs: float32, normalized, contiguous."""

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """Xavier uniform matrices and kernels, biases of zero."""
        return xavier_uniform(self.layout, rng)

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """None: nothing changes within an episode."""
        return None

    def act(
        self,
        weights: Weights,
        observations: Shaped[np.ndarray, "members ..."],
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        buffers: Buffers,
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs. Rewards and state are ignored. An observation that is not finite gives NaN."""
        return self.forward(weights, self.prepare_inputs(observations, buffers))


@dataclass(frozen=True, kw_only=True)
class InitializedPolicy(StaticPolicy, ABC):
    """A feedforward network whose search starts at random weights, drawn by one of `INITIALIZATIONS`."""

    initialization: str = option(
        "xavier",
        "initial weights: xavier, with biases of zero, or pytorch, the default of its layers",
        choices=tuple(INITIALIZATIONS),
        only_start=True,
    )

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """Parameters drawn by the chosen initialization."""
        return INITIALIZATIONS[self.initialization](self.layout, rng)
