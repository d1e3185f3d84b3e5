"""The gradient steps of TD3: twin critics and actors, their optimizers and targets.

Fujimoto, van Hoof & Meger 2018, "Addressing Function Approximation Error in Actor-Critic Methods", arXiv 1802.09477,
algorithm 1. With s, a, r, s' of a transition, d = 1 if it ended in a terminal state, and targets marked by a prime:

    a~ = clip(pi'(s') + clip(noise, -c, c)),   y = r + gamma (1 - d) min(Q1'(s', a~), Q2'(s', a~))
    critics descend  mean (Q1(s, a) - y)^2 + mean (Q2(s, a) - y)^2,   actors descend  -mean Q1(s, pi(s))
    targets follow   theta' += tau (theta - theta')

Noise and its clip are fractions of half the range of the action. Who trains when, and on whose actions, is decided by
the algorithms. Both critics, or all actors, are computed at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from hebbes.hybrids.core.networks import Network, Parameters, Workspace


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

    @property
    def center(self) -> Float32[Tensor, " action"]:
        """The middle of the range."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> Float32[Tensor, " action"]:
        """Half the length of the range."""
        return (self.high - self.low) / 2


class Trained:
    """Networks with their gradient and Adam (Kingma & Ba 2015), which treats all parameters as one array."""

    def __init__(self, network: Network, rows: Float32[Tensor, "networks params"], learning_rate: float):
        """Trains these rows in place."""
        self.network, self.parameters = network, network.make_parameters(rows)
        self._workspace = Workspace()
        self._gradient = network.make_parameters(torch.zeros_like(rows))
        self._optimizer = torch.optim.Adam([rows], lr=learning_rate, fused=True)
        rows.grad = self._gradient.rows

    def forward(self, inputs: Float32[Tensor, "networks batch in"]) -> list[Tensor]:
        """The outputs of each layer."""
        return self.network.forward(self.parameters, inputs, self._workspace)

    def descend(self, inputs: Float32[Tensor, "networks batch in"], outputs: list[Tensor], gradient: Tensor) -> None:
        """One step down the gradient of a loss, given by its gradient with respect to the last outputs."""
        self.network.backward(self.parameters, inputs, outputs, gradient, self._workspace, self._gradient)
        self._optimizer.step()

    def get_state(self) -> dict[str, np.ndarray]:
        """Named arrays: the rows, and the optimizer's moments and number of steps, 0 before the first."""
        rows = self.parameters.rows
        state = self._optimizer.state[rows]
        zeros = torch.zeros_like(rows)
        return {
            "rows": rows.numpy().copy(),
            "adam_mean": state.get("exp_avg", zeros).numpy().copy(),
            "adam_square": state.get("exp_avg_sq", zeros).numpy().copy(),
            "adam_steps": np.array([int(state.get("step", 0))], np.int64),
        }

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `get_state` returned."""
        rows = self.parameters.rows
        rows.copy_(torch.from_numpy(state["rows"]))
        self._optimizer.state[rows] = {
            "step": torch.tensor(float(state["adam_steps"][0])),
            "exp_avg": torch.tensor(state["adam_mean"]),
            "exp_avg_sq": torch.tensor(state["adam_square"]),
        }


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
        self.targets = network.make_parameters(rows.clone())
        self._first = network.make_parameters(rows[:1])
        self._target_pass, self._actor_pass = Workspace(), Workspace()

    def train(self, batch: Batch, next_actions: Float32[Tensor, "batch action"]) -> Float32[Tensor, "2 batch"]:
        """One gradient step on the batch, with the target actor's noisy actions. Returns the errors before it."""
        following = torch.cat((batch.next_observations, next_actions), 1)
        estimates = self._network.forward(self.targets, _repeat(following, 2), self._target_pass)[-1].squeeze(2)
        targets = torch.addcmul(batch.rewards, batch.continues, estimates.amin(0), value=self._discount)
        inputs = _repeat(torch.cat((batch.observations, batch.actions), 1), 2)
        outputs = self.trained.forward(inputs)
        errors = outputs[-1].squeeze(2) - targets
        self.trained.descend(inputs, outputs, (errors * (2 / len(targets))).unsqueeze(2))
        return errors

    def differentiate(
        self, observations: Float32[Tensor, "actors batch observation"], actions: Float32[Tensor, "actors batch action"]
    ) -> tuple[Float32[Tensor, "actors batch"], Float32[Tensor, "actors batch action"]]:
        """Q1 of these actions, and its gradient with respect to each action."""
        inputs = torch.cat((observations, actions), 2).flatten(0, 1).unsqueeze(0)
        outputs = self._network.forward(self._first, inputs, self._actor_pass)
        ones = torch.ones_like(outputs[-1])
        gradient = self._network.backward(
            self._first, inputs, outputs, ones, self._actor_pass, needs_input_gradient=True
        )
        assert gradient is not None
        shape = actions.shape[:2]
        return outputs[-1].view(shape), gradient.view(*shape, -1)[:, :, observations.shape[2] :]

    def move_targets(self) -> None:
        """Moves the targets towards the critics."""
        self.targets.rows.lerp_(self.trained.parameters.rows, self._target_rate)

    def get_state(self) -> dict[str, np.ndarray]:
        """Named arrays: parameters, targets, the optimizer's state."""
        return {**self.trained.get_state(), "targets": self.targets.rows.numpy().copy()}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `get_state` returned."""
        self.trained.set_state(state)
        self.targets.rows.copy_(torch.from_numpy(state["targets"]))


@dataclass(frozen=True)
class ActorNetwork:
    """The shape of actors, and how their outputs, in [-1, 1], become actions."""

    network: Network
    range: ActionRange
    _workspace: Workspace = field(default_factory=Workspace, repr=False)

    def copy(self, rows: Float32[np.ndarray, "actors params"]) -> Parameters:
        """Parameters of actors, with the numbers of these rows."""
        return self.network.make_parameters(torch.tensor(rows))

    def act(self, parameters: Parameters, observations: Float32[Tensor, "actors batch observation"]) -> Tensor:
        """The actions (actors, batch, action) of these actors, in the environment's units."""
        outputs = self.network.forward(parameters, observations, self._workspace)
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

    def __init__(self, shape: ActorNetwork, rows: Float32[Tensor, "actors params"], learning_rate: float):
        """Trains these rows in place."""
        self._shape, self.trained = shape, Trained(shape.network, rows, learning_rate)

    def train(
        self, observations: Float32[Tensor, "actors batch observation"], critics: Critics
    ) -> Float32[Tensor, "actors batch"]:
        """One gradient step of each actor up its mean Q1 on its observations. Returns Q1 before it."""
        outputs = self.trained.forward(observations)
        scale = self._shape.range.half
        values, slopes = critics.differentiate(
            observations, torch.addcmul(self._shape.range.center, outputs[-1], scale)
        )
        self.trained.descend(observations, outputs, slopes * (scale / -observations.shape[1]))
        return values


def draw_target_noise(
    rng: np.random.Generator, shape: tuple[int, int], scale: float, clip: float
) -> Float32[Tensor, "batch action"]:
    """Normal noise with this standard deviation, clipped to +-`clip`."""
    noise = rng.standard_normal(shape, np.float32)
    return torch.from_numpy(np.clip(noise * np.float32(scale), -clip, clip).astype(np.float32, copy=False))


def _repeat(inputs: Float32[Tensor, "batch in"], networks: int) -> Float32[Tensor, "networks batch in"]:
    return inputs.expand(networks, -1, -1)
