"""The gradient steps of TD3: twin critics and actors, their optimizers and targets.

Fujimoto, van Hoof & Meger 2018, "Addressing Function Approximation Error in Actor-Critic Methods", arXiv 1802.09477,
algorithm 1. With s, a, r, s' of a transition, d = 1 if it ended in a terminal state, and targets marked by a prime:

    a~ = clip(pi'(s') + clip(noise, -c, c)),   y = r + gamma (1 - d) min(Q1'(s', a~), Q2'(s', a~))
    critics descend  mean (Q1(s, a) - y)^2 + mean (Q2(s, a) - y)^2,   actors descend  -mean Q1(s, pi(s))
    targets follow   theta' += tau (theta - theta')

Noise and its clip are fractions of half the range of the action. Who trains when, and on whose actions, is decided by
the algorithms. On a GPU both critics, or all actors, are computed at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor
from torch.optim.adam import adam

from hebbes.hybrids.core.device import copy_to_host
from hebbes.hybrids.core.networks import Network, Parameters


@dataclass(frozen=True)
class Batch:
    """Transitions drawn from a replay. Actions are in the environment's units."""

    observations: Float32[Tensor, "batch observation"]
    actions: Float32[Tensor, "batch action"]
    rewards: Float32[Tensor, " batch"]
    continues: Float32[Tensor, " batch"]
    """0 after a terminal state, else 1. The end by a time limit is not terminal."""
    next_observations: Float32[Tensor, "batch observation"]


@dataclass(frozen=True)
class ActionRange:
    """The range of each number of an action."""

    low: Float32[Tensor, " action"]
    high: Float32[Tensor, " action"]

    @cached_property
    def center(self) -> Float32[Tensor, " action"]:
        """The middle of the range."""
        return (self.low + self.high) / 2

    @cached_property
    def half(self) -> Float32[Tensor, " action"]:
        """Half the length of the range."""
        return (self.high - self.low) / 2


class Trained:
    """Networks with their gradient and Adam (Kingma & Ba 2015), which treats all parameters as one array."""

    def __init__(self, network: Network, rows: Float32[Tensor, "networks params"], learning_rate: float):
        """Trains these rows in place."""
        self.network, self.rows, self._learning_rate = network, rows, learning_rate
        self._gradient, self._mean, self._square = (torch.zeros_like(rows) for _ in range(3))
        self._steps = torch.zeros((), device=rows.device)  # in float32, which ends at 2^24
        self._num_steps = torch.zeros((), dtype=torch.int64, device=rows.device)
        self._parts = [
            (part, network.make_parameters(rows[part]), network.make_parameters(self._gradient[part]))
            for part in cut_networks(rows)
        ]

    def descend(
        self, inputs: Float32[Tensor, "networks batch in"], differentiate: Callable[[slice, Tensor], Tensor]
    ) -> None:
        """One step down the gradient of a loss.

        Args:
            differentiate: gets the numbers of some networks, and their outputs. It returns the gradient of the loss
                with respect to these, which is overwritten.
        """
        for part, parameters, gradient in self._parts:
            outputs = self.network.forward(parameters, inputs[part])
            slopes = differentiate(part, outputs[-1])
            self.network.backward(parameters, inputs[part], outputs, slopes, parameter_gradient=gradient)
        self._num_steps.add_(1)
        adam(
            [self.rows],
            [self._gradient],
            [self._mean],
            [self._square],
            [],
            [self._steps],
            fused=True,
            lr=self._learning_rate,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )

    def get_state(self) -> dict[str, np.ndarray]:
        """Named arrays: the rows, and the optimizer's moments and number of steps."""
        return {
            "rows": copy_to_host(self.rows),
            "adam_mean": copy_to_host(self._mean),
            "adam_square": copy_to_host(self._square),
            "adam_steps": copy_to_host(self._num_steps.view(1)),
        }

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `get_state` returned."""
        for array, name in ((self.rows, "rows"), (self._mean, "adam_mean"), (self._square, "adam_square")):
            array.copy_(torch.tensor(state[name]))
        for array in (self._num_steps, self._steps):
            array.fill_(int(state["adam_steps"][0]))


class Critics:
    """Two critics, which estimate the discounted return of an action, and their targets."""

    def __init__(
        self,
        network: Network,
        rows: Float32[Tensor, "2 params"],
        *,
        learning_rate: float,
        discount: float,
        target_rate: float,
    ):
        """Starts with these rows, and targets equal to them. `target_rate` is tau."""
        self._network, self._discount, self._target_rate = network, discount, target_rate
        self.trained = Trained(network, rows, learning_rate)
        self.targets = rows.clone()
        self._target_parts = [(part, network.make_parameters(self.targets[part])) for part in cut_networks(rows)]
        self._first = network.make_parameters(rows[:1])

    def train(self, batch: Batch, next_actions: Float32[Tensor, "batch action"]) -> Float32[Tensor, "2 batch"]:
        """One gradient step on the batch, with the target actor's noisy actions. Returns the errors before it."""
        following = torch.cat((batch.next_observations, next_actions), 1).expand(2, -1, -1)
        estimates = batch.rewards.new_empty(2, len(batch.rewards))
        for part, parameters in self._target_parts:
            estimates[part] = self._network.forward(parameters, following[part])[-1].squeeze(2)
        targets = torch.addcmul(batch.rewards, batch.continues, estimates.amin(0), value=self._discount)
        errors = torch.empty_like(estimates)

        def differentiate(part: slice, outputs: Tensor) -> Tensor:
            torch.sub(outputs.squeeze(2), targets, out=errors[part])
            return (errors[part] * (2 / len(targets))).unsqueeze(2)

        self.trained.descend(torch.cat((batch.observations, batch.actions), 1).expand(2, -1, -1), differentiate)
        return errors

    def differentiate(
        self, observations: Float32[Tensor, "actors batch observation"], actions: Float32[Tensor, "actors batch action"]
    ) -> tuple[Float32[Tensor, "actors batch"], Float32[Tensor, "actors batch action"]]:
        """Q1 of these actions, and its gradient with respect to each action."""
        inputs = torch.cat((observations, actions), 2).flatten(0, 1).unsqueeze(0)
        outputs = self._network.forward(self._first, inputs)
        ones = torch.ones_like(outputs[-1])
        gradient = self._network.backward(self._first, inputs, outputs, ones, first_input=observations.shape[2])
        assert gradient is not None
        return outputs[-1].view(actions.shape[:2]), gradient.view(actions.shape)

    def move_targets(self) -> None:
        """Moves the targets towards the critics."""
        self.targets.lerp_(self.trained.rows, self._target_rate)

    def copy_rows(self) -> Float32[np.ndarray, "2 params"]:
        """The parameters of both, in an array of their own."""
        return copy_to_host(self.trained.rows)

    def get_state(self) -> dict[str, np.ndarray]:
        """Named arrays: parameters, targets, the optimizer's state."""
        return {**self.trained.get_state(), "targets": copy_to_host(self.targets)}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `get_state` returned."""
        self.trained.set_state(state)
        self.targets.copy_(torch.tensor(state["targets"]))


@dataclass(frozen=True)
class ActorNetwork:
    """The shape of actors, and how their outputs, in [-1, 1], become actions."""

    network: Network
    range: ActionRange

    def copy(self, rows: Float32[np.ndarray, "actors params"]) -> Parameters:
        """Parameters of actors, with the numbers of these rows."""
        return self.network.make_parameters(torch.tensor(rows, device=self.range.low.device))

    def act(self, parameters: Parameters, observations: Float32[Tensor, "actors batch observation"]) -> Tensor:
        """The actions (actors, batch, action) of these actors, in the environment's units."""
        outputs = self.network.forward(parameters, observations)
        return torch.addcmul(self.range.center, outputs[-1], self.range.half)

    def act_noisily(
        self,
        parameters: Parameters,
        observations: Float32[Tensor, "batch observation"],
        noise: Float32[Tensor, "batch action"],
    ) -> Float32[Tensor, "batch action"]:
        """The actions of one actor, with noise in units of half the range, clipped to the range."""
        actions = self.act(parameters, observations.unsqueeze(0)).squeeze(0)
        return torch.addcmul(actions, noise, self.range.half).clamp_(self.range.low, self.range.high)


class Actors:
    """Actors in training, each with a new optimizer."""

    def __init__(self, shape: ActorNetwork, rows: Float32[np.ndarray, "actors params"], learning_rate: float):
        """Trains these rows. On a CPU they change in place, else with `fetch_rows`."""
        self._shape, self._host_rows = shape, torch.from_numpy(rows)
        self.trained = Trained(shape.network, self._host_rows.to(shape.range.low.device), learning_rate)

    def train(
        self, observations: Float32[Tensor, "actors batch observation"], critics: Critics
    ) -> Float32[Tensor, "actors batch"]:
        """One gradient step of each actor up its mean Q1 on its observations. Returns Q1 before it."""
        scale = self._shape.range.half
        values = observations.new_empty(observations.shape[:2])

        def differentiate(part: slice, outputs: Tensor) -> Tensor:
            actions = torch.addcmul(self._shape.range.center, outputs, scale)
            values[part], slopes = critics.differentiate(observations[part], actions)
            return slopes * (scale / -observations.shape[1])

        self.trained.descend(observations, differentiate)
        return values

    def fetch_rows(self) -> None:
        """Copies the parameters to the rows that training began with, if they are elsewhere."""
        if self.trained.rows is not self._host_rows:
            self._host_rows.copy_(self.trained.rows)


def draw_target_noise(
    rng: np.random.Generator, scale: float, clip: float, out: Float32[np.ndarray, "batch action"]
) -> None:
    """Normal noise with this standard deviation, clipped to +-`clip`."""
    rng.standard_normal(out.shape, np.float32, out)
    np.clip(np.multiply(out, np.float32(scale), out=out), -clip, clip, out=out)


def cut_networks(rows: Float32[Tensor, "networks params"]) -> list[slice]:
    """Which of these networks are computed at once: on a CPU each alone, as oneDNN multiplies."""
    size = 1 if rows.device.type == "cpu" else len(rows)
    return [slice(first, first + size) for first in range(0, len(rows), size)]
