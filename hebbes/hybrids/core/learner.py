"""Learner: what every method with gradients has: a replay, critics, and how critics and actors are trained on it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, nan

import numpy as np
import torch
from jaxtyping import Float32, Shaped
from torch import Tensor

from hebbes.contracts.engine import Transitions
from hebbes.contracts.plain_values import prefix_arrays
from hebbes.contracts.policy import Layout
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.trainer import TrainerState
from hebbes.hybrids.core.actor_critic import ActionRange, ActorNetwork, Actors, Batch, Critics, draw_target_noise
from hebbes.hybrids.core.device import MirroredArray, RecordedCall
from hebbes.hybrids.core.networks import Network, Parameters
from hebbes.hybrids.core.replay import Replay, ReplayView, rescale_actions
from hebbes.hybrids.core.settings import Bounds, GradientSettings, count_slack
from hebbes.policies.base import pytorch_uniform
from hebbes.policies.layers import compute_dense_shapes
from hebbes.policies.mlp import MLP


class Gradients:
    """Gradient steps on batches of a replay. All randomness comes from the generators that its methods are given."""

    def __init__(
        self,
        settings: GradientSettings,
        policy: MLP,
        bounds: Bounds,
        critics: Float32[np.ndarray, "2 params"],
        replay: ReplayView,
    ) -> None:
        """Starts from these rows of the critics."""
        self._settings, self._replay = settings, replay
        sizes = int(np.prod(policy.observation_shape)), *policy.hidden_sizes, policy.num_outputs
        action_range = ActionRange(*(torch.from_numpy(bound).to(settings.device) for bound in bounds))
        self.actor = ActorNetwork(Network(sizes, policy.activation, "tanh"), action_range)
        self.critics = Critics(
            Network(settings.compute_critic_sizes(policy), settings.critic_activation, "linear"),
            torch.tensor(critics, device=settings.device),
            learning_rate=settings.learning_rate,
            discount=settings.discount,
            target_rate=settings.target_rate,
        )
        self._noise = MirroredArray((settings.batch_size, policy.num_outputs), settings.device)
        self._squared_errors, self._values = (torch.zeros((), device=settings.device) for _ in range(2))
        self._critic_steps = self._actor_steps = 0
        self._recorded_critic_step = RecordedCall(_step_critics, settings.device)
        self._recorded_actor_step = RecordedCall(_step_actors, settings.device)

    def train_critics(self, target_actor: Parameters, rng: np.random.Generator) -> None:
        """One step of the critics on a fresh batch, with this target actor. Their targets stay."""
        settings = self._settings
        batch = self._replay.draw(rng, settings.batch_size, settings.device)
        draw_target_noise(rng, settings.target_noise, settings.target_noise_clip, self._noise.array)
        self._noise.send()
        self._recorded_critic_step(self.actor, target_actor, self._noise, self.critics, batch, self._squared_errors)
        self._critic_steps += 1

    def train_actors(self, actors: Actors, rng: np.random.Generator) -> None:
        """One step of each actor on a fresh batch of its own."""
        count = len(actors.trained.rows)
        batch = self._replay.draw(rng, count * self._settings.batch_size, self._settings.device)
        self._recorded_actor_step(actors, self.critics, batch, self._values)
        self._actor_steps += 1

    def make_actors(self, rows: Float32[np.ndarray, "actors params"]) -> Actors:
        """Actors that start from these rows, and train them. Their optimizer is new."""
        return Actors(self.actor, rows, self._settings.learning_rate)

    @contextmanager
    def use_threads(self) -> Iterator[None]:
        """Computes with the number of threads that the settings say, without autograd.

        Each thread of the process has a number of its own, from the first time that it asks for it.
        """
        before = torch.get_num_threads()
        torch.set_num_threads(self._settings.gradient_threads)
        try:
            with torch.no_grad():
                yield
        finally:
            torch.set_num_threads(before)

    @property
    def critic_loss(self) -> float:
        """Mean squared errors of both critics, added, over the steps since the last `take_metrics`; NaN without any."""
        return float(self._squared_errors) / self._critic_steps if self._critic_steps else nan

    @property
    def q_mean(self) -> float:
        """Mean estimate of the actors' actions over these steps; NaN without any."""
        return float(self._values) / self._actor_steps if self._actor_steps else nan

    def take_metrics(self) -> dict[str, float]:
        """Metrics of the gradient steps since the last call.

        Raises FloatingPointError if an estimate is not finite.
        """
        metrics = {
            "critic_loss": self.critic_loss,
            "q_mean": self.q_mean,
            "critic_steps": self._critic_steps,
            "actor_steps": self._actor_steps,
            "replay_size": len(self._replay),
        }
        check_estimates(float(self._squared_errors), float(self._values))
        self._squared_errors.zero_()
        self._values.zero_()
        self._critic_steps = self._actor_steps = 0
        return metrics


def _step_critics(
    actor: ActorNetwork,
    target_actor: Parameters,
    noise: MirroredArray,
    critics: Critics,
    batch: Batch,
    squared_errors: Float32[Tensor, ""],
) -> None:
    next_actions = actor.act_noisily(target_actor, batch.next_observations, noise.tensor)
    squared_errors += critics.train(batch, next_actions).square().mean(1).sum()


def _step_actors(actors: Actors, critics: Critics, batch: Batch, values: Float32[Tensor, ""]) -> None:
    observations = batch.observations.unflatten(0, (len(actors.trained.rows), -1))
    values += actors.train(observations, critics).mean()


class Learner(Gradients):
    """What a method with gradients keeps from one unit to the next: a replay, and critics."""

    def __init__(self, settings: GradientSettings, policy: MLP, bounds: Bounds, seed: int) -> None:
        """An empty replay, and critics that start as PyTorch draws its layers."""
        self.bounds = bounds
        slack = count_slack(settings.replay_size, settings.replay_slack)
        self.replay = Replay(settings.replay_size, int(np.prod(policy.observation_shape)), policy.num_outputs, slack)
        rng = make_generator(seed, Purpose.INITIAL_PARAMS, member=1)
        layout = Layout(compute_dense_shapes(settings.compute_critic_sizes(policy), bias=True))
        rows = np.stack([pytorch_uniform(layout, rng) for _ in range(2)])
        super().__init__(settings, policy, bounds, rows, self.replay)

    def add(self, transitions: Transitions) -> None:
        """Adds transitions to the replay, with actions, in [-1, 1] here, in the environment's units."""
        if not len(transitions):
            return
        self.replay.add(rescale_actions(transitions, *self.bounds))

    def take_critics(
        self, state: Mapping[str, Shaped[np.ndarray, "..."]], critic_loss: float, critic_steps: int
    ) -> None:
        """Replaces the critics by those that a job has trained for so many steps."""
        check_estimates(critic_loss)
        self.critics.set_state(state)
        self._squared_errors += critic_loss * critic_steps
        self._critic_steps += critic_steps

    def get_state(self) -> TrainerState:
        """The critics and the replay."""
        arrays = prefix_arrays("critics", self.critics.get_state())
        return TrainerState(arrays, {"transitions": self.replay.count}, self.replay.get_segments())

    def set_state(self, state: TrainerState) -> None:
        """Continues from what `get_state` returned."""
        self.critics.set_state(state.select_arrays("critics"))
        self.replay.set_segments(state.segments, state.values["transitions"])


def check_estimates(*estimates: float) -> None:
    """Raises FloatingPointError if an estimate of the critics is not finite."""
    if not all(map(isfinite, estimates)):
        raise FloatingPointError("the critics' estimates are no longer finite; is learning_rate too large?")
