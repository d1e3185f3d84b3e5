"""TD3: one actor explores with noise and learns after every env step.

Fujimoto, van Hoof & Meger 2018, arXiv 1802.09477, algorithm 1; code sfujim/TD3 34770cc. The actor and all targets move
after every `policy_delay` steps of the critics. Until `start_steps`, actions are uniform and nothing is trained.

Departures from that code:

- The actor's hidden layers have the policy's activation, tanh by default, and the critics' are leaky ReLUs, as in
  AES-RL's code (5b69a06). `--preset td3_original` gives theirs, and its 25,000 random env steps.
- The actor's gradient step takes a new batch. Theirs takes that of the critics.
- Each number of an action has its own bounds. Theirs takes the upper bound of the first for all.
- On the Gymnasium back end, an episode that ends in a terminal state at its time limit is terminal. Theirs never is,
  and EnvPool does not tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float32, Int, Shaped

from hebbes.contracts.engine import Engine
from hebbes.contracts.environment import EnvStep
from hebbes.contracts.notices import make_failure_notices
from hebbes.contracts.option import option
from hebbes.contracts.plain_values import prefix_arrays
from hebbes.contracts.policy import Buffers
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.search_space import LogUniform, Uniform
from hebbes.contracts.trainer import Progress, TrainerState, UnitResult
from hebbes.execution.transitions import Collector, find_finite
from hebbes.hybrids import core
from hebbes.hybrids.algorithm import Algorithm
from hebbes.hybrids.core.settings import GradientSettings
from hebbes.hybrids.first_env_step_failures import FirstEnvStepFailures
from hebbes.policies.mlp import MLP

if TYPE_CHECKING:
    from hebbes.execution.chunks import Task


@dataclass(frozen=True)
class TD3Settings(GradientSettings):
    """Hyperparameters of TD3."""

    learning_rate: float = option(
        3e-4, "learning rate of Adam, for critics and actors", range="> 0", search=LogUniform(0.0001, 0.01)
    )
    exploration_noise: float = option(
        0.1,
        "standard deviation of the noise on the actor's actions, in units of half their range",
        range=">= 0",
        search=Uniform(0.0, 0.3),
    )
    policy_delay: int = option(2, "steps of the critics between steps of the actor and of all targets", range=">= 1")


class TD3(Algorithm):
    """Unit: one episode, with a gradient step after each of its env steps."""

    Settings: ClassVar[type[TD3Settings]] = TD3Settings
    defaults: ClassVar[Mapping[str, Any]] = {"hidden_sizes": (256, 256)}
    unit = "episode"

    def __init__(
        self,
        settings: TD3Settings,
        task: "Task",
        weights: Float32[np.ndarray, " params"],
        buffers: Buffers,
        max_episode_steps: int | None,
    ) -> None:
        """Starts with these weights of the actor."""
        self.settings, self.task = settings, task
        self._buffers, self._max_episode_steps = buffers, max_episode_steps
        bounds = core.episodes.find_action_bounds(task)
        self._episodes = core.episodes.Episodes(task)
        assert isinstance(task.agent.policy, MLP)
        self.learner = core.learner.Learner(settings, task.agent.policy, bounds, task.seed)
        self._row = weights[np.newaxis].astype(np.float32)
        self._actors = self.learner.make_actors(self._row)
        self._target = self.learner.actor.copy(self._row)
        self._failures = FirstEnvStepFailures()

    @property
    def actor(self) -> Float32[np.ndarray, " params"]:
        """The actor's weights."""
        return self._row[0].copy()

    def advance(self, progress: Progress, engine: Engine) -> UnitResult:
        """Plays one episode."""
        exploration = _Exploration(self, progress)
        with self.learner.use_threads():
            played = self._episodes.play(self._row, self._buffers, progress.units, exploration, self._max_episode_steps)
        env_steps = int(played.env_steps[0])
        self._failures.count(played.faults, env_steps)
        metrics = {
            "return": float(played.returns[0]),
            "episode_length": env_steps,
            **self.learner.take_metrics(),
        }
        return UnitResult(env_steps, metrics, make_failure_notices("the episode", played.faults))

    def train(self, env_steps: int, rng: np.random.Generator) -> None:
        """The gradient steps after the env step of this number."""
        self.learner.train_critics(self._target, rng)
        if (env_steps - self.settings.start_steps) % self.settings.policy_delay == 0:
            self.learner.train_actors(self._actors, rng)
            self._actors.fetch_rows()
            self._target.rows.lerp_(self._actors.trained.rows, self.settings.target_rate)
            self.learner.critics.move_targets()

    def close(self) -> None:
        """Frees the simulator."""
        self._episodes.close()

    def get_state(self) -> TrainerState:
        """The actor, its target and its optimizer, the critics and the replay."""
        learned = self.learner.get_state()
        actor = prefix_arrays("actor", self._actors.trained.get_state())
        arrays = {**learned.arrays, **actor, "target": core.device.copy_to_host(self._target.rows)}
        return TrainerState(arrays, learned.values, learned.segments)

    def set_state(self, state: TrainerState) -> None:
        """Continues from what `get_state` returned."""
        self.learner.set_state(state)
        self._actors.trained.set_state(state.select_arrays("actor"))
        self._actors.fetch_rows()
        self._target = self.learner.actor.copy(state.arrays["target"])


class _Exploration(Collector):
    """Takes part in one episode: adds noise to the actions, and trains after each env step."""

    def __init__(self, algorithm: TD3, progress: Progress):
        self._algorithm, self._env_steps = algorithm, progress.env_steps
        seed = algorithm.task.seed
        self._noise = make_generator(seed, Purpose.EXPLORATION, generation=progress.units)
        self._batches = make_generator(seed, Purpose.GRADIENTS, generation=progress.units)

    def explore(self, actions: Shaped[np.ndarray, "rows ..."]) -> Shaped[np.ndarray, "rows ..."]:
        """Uniform actions until `start_steps`, then those of the actor with noise."""
        settings = self._algorithm.settings
        if self._env_steps < settings.start_steps:
            return self._noise.uniform(-1, 1, actions.shape).astype(np.float32)
        noise = self._noise.standard_normal(actions.shape, np.float32) * np.float32(settings.exploration_noise)
        return np.clip(actions + noise, -1, 1)

    def record(
        self, members: Int[np.ndarray, " rows"], actions: Shaped[np.ndarray, "rows ..."], env_step: EnvStep
    ) -> None:
        """Adds the transition to the replay, and trains."""
        self._env_steps += 1
        transitions = self.make_transitions(actions, env_step)
        self._algorithm.learner.add(transitions[find_finite(transitions)])
        if self._env_steps > self._algorithm.settings.start_steps and len(self._algorithm.learner.replay):
            self._algorithm.train(self._env_steps, self._batches)
