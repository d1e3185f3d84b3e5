"""Gradient steps of TD3 per second, ours and those of Stable-Baselines3, measured by turns on the same threads.

    pip install -r tests/hybrids/requirements.txt
    python -m benchmarks.gradient_steps --threads 1
    python -m benchmarks.gradient_steps --device cuda

A step draws a batch of 256 transitions of HalfCheetah's size (17 numbers observed, 6 of an action), and trains both
critics; every second step also trains the actor and moves the targets. All networks have layers of 400 and 300 ReLUs.
The values are medians over the turns. The first turn is not counted.

The third program is no learner. It computes nothing but the matrix products that a gradient step cannot do without, in
float32, from arrays that exist, by the function that hebbes uses: about the most gradient steps that products allow.
"""

import argparse
import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import gymnasium
import numpy as np
import torch

from hebbes.contracts.engine import Transitions
from hebbes.hybrids.core.device import check_device
from hebbes.hybrids.core.learner import Learner
from hebbes.hybrids.core.networks import multiply
from hebbes.hybrids.core.settings import GradientSettings
from hebbes.policies.mlp import MLP

OBSERVATION, ACTION, HIDDEN, BATCH = 17, 6, (400, 300), 256
TRANSITIONS, STEPS, TURNS = 50_000, 200, 5


class Ours:
    """The gradient steps of `hebbes.hybrids.td3`."""

    def __init__(self, threads: int, device: str, transitions: Transitions):
        settings = GradientSettings(
            critic_activation="relu",
            batch_size=BATCH,
            gradient_threads=threads,
            replay_size=TRANSITIONS,
            device=device,
        )
        policy = MLP((OBSERVATION,), ACTION, hidden_sizes=HIDDEN, bias=True, activation="relu")
        bounds = -np.ones(ACTION, np.float32), np.ones(ACTION, np.float32)
        self._learner = Learner(settings, policy, bounds, 0)
        self._learner.add(transitions)
        row = policy.initial_params(np.random.default_rng(0))[np.newaxis]
        self._target = self._learner.actor.copy(row)
        self._actors = self._learner.make_actors(row)

    def train(self, steps: int) -> None:
        """Does so many steps."""
        rng = np.random.default_rng(0)
        with self._learner.use_threads():
            for step in range(1, steps + 1):
                self._learner.train_critics(self._target, rng)
                if step % 2 == 0:
                    self._learner.train_actors(self._actors, rng)
                    self._actors.fetch_rows()
                    self._target.rows.lerp_(self._actors.trained.rows, 0.005)
                    self._learner.critics.move_targets()


class Environment(gymnasium.Env):
    """Spaces of HalfCheetah. It is never stepped."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATION,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (ACTION,), np.float32)


class StableBaselines:
    """`stable_baselines3.TD3`."""

    def __init__(self, threads: int, device: str, transitions: Transitions):
        from stable_baselines3 import TD3
        from stable_baselines3.common.logger import configure

        self._threads = threads
        self._model = TD3(
            "MlpPolicy",
            Environment(),
            batch_size=BATCH,
            buffer_size=TRANSITIONS,
            device=device,
            policy_kwargs={"net_arch": list(HIDDEN)},
        )
        self._model.set_logger(configure(None, []))
        buffer = self._model.replay_buffer
        assert buffer is not None
        buffer.observations[:, 0], buffer.next_observations[:, 0] = transitions.observations, transitions.observations
        buffer.actions[:, 0], buffer.rewards[:, 0] = transitions.actions, transitions.rewards
        buffer.full = True

    def train(self, steps: int) -> None:
        """Does so many steps."""
        torch.set_num_threads(self._threads)
        self._model.train(steps, BATCH)


class Products:
    """The products of a gradient step: of activations with weights, of gradients with both."""

    def __init__(self, threads: int, device: str):
        self._threads, self._device = threads, device
        actor, critic = (OBSERVATION, *HIDDEN, ACTION), (OBSERVATION + ACTION, *HIDDEN, 1)
        predicted = [*self._forward(actor), *2 * self._forward(critic)]
        learned = [*self._forward(critic), *self._to_weights(critic), *self._to_inputs(critic[1:])]
        self._of_critics = [*predicted, *2 * learned]
        judged = [*self._forward(actor), *self._forward(critic), *self._to_inputs(critic)]
        self._of_actor = [*judged, *self._to_weights(actor), *self._to_inputs(actor[1:])]

    def _make(self, rows: int, columns: int) -> torch.Tensor:
        return torch.randn((1, rows, columns), device=self._device)

    def _forward(self, sizes: Sequence[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(self._make(BATCH, inner), self._make(outer, inner).mT) for inner, outer in pairwise(sizes)]

    def _to_weights(self, sizes: Sequence[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(self._make(BATCH, outer).mT, self._make(BATCH, inner)) for inner, outer in pairwise(sizes)]

    def _to_inputs(self, sizes: Sequence[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(self._make(BATCH, outer), self._make(outer, inner)) for inner, outer in pairwise(sizes)]

    def train(self, steps: int) -> None:
        """Computes the products of so many steps."""
        torch.set_num_threads(self._threads)
        for step in range(1, steps + 1):
            for left, right in self._of_critics + (self._of_actor if step % 2 == 0 else []):
                multiply(left, right)


def main() -> None:
    """Prints the steps per second of each, and what they are as a multiple of Stable-Baselines3's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch (default: 1)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what takes the steps (default: cpu)")
    args = parser.parse_args()
    check_device(args.device)
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(TRANSITIONS, OBSERVATION)).astype(np.float32)
    actions = rng.uniform(-1, 1, (TRANSITIONS, ACTION)).astype(np.float32)
    rewards, terminated = rng.normal(size=TRANSITIONS), np.zeros(TRANSITIONS, np.bool_)
    transitions = Transitions(observations, actions, rewards, terminated, observations)
    trained: dict[str, Ours | StableBaselines | Products] = {
        "hebbes": Ours(args.threads, args.device, transitions),
        "stable_baselines3": StableBaselines(args.threads, args.device, transitions),
        "products alone": Products(args.threads, args.device),
    }
    speeds: dict[str, list[float]] = {name: [] for name in trained}
    for _ in range(TURNS + 1):
        for name, each in trained.items():
            started = time.perf_counter()
            each.train(STEPS)
            if args.device == "cuda":
                torch.cuda.synchronize()
            speeds[name].append(STEPS / (time.perf_counter() - started))
    medians = {name: median(values[1:]) for name, values in speeds.items()}
    for name, value in medians.items():
        print(f"{name:20} {value:8.1f} steps/s, ratio {value / medians['stable_baselines3']:.2f}")


if __name__ == "__main__":
    main()
