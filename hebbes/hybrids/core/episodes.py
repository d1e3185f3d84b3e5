"""One environment in the process of a run, for methods that learn while an episode goes on."""

from typing import Any

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.environment import BatchEnv
from hebbes.contracts.policy import Buffers
from hebbes.contracts.randomness import Purpose, derive_simulator_seed, make_generator
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.execution.chunks import Task
from hebbes.execution.episode import EpisodeResult, run_episode
from hebbes.execution.transitions import Collector


class Episodes:
    """Plays training episodes of one member, one after another."""

    def __init__(self, task: Task) -> None:
        """Makes the simulator."""
        self._task = task
        seed = derive_simulator_seed(task.seed, Purpose.TRAINING)
        self._env = make_batch_env(task.environment, [seed], threads=1, training=True)

    def find_action_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and highest action of the environment without wrappers."""
        return find_action_range(self._env)

    def play(
        self,
        row: Float32[np.ndarray, "1 params"],
        buffers: Buffers,
        number: int,
        collector: Collector,
        max_env_steps: int | None,
    ) -> EpisodeResult:
        """Plays the episode of this number. The collector may change the row in place."""
        rng = make_generator(self._task.seed, Purpose.TRAINING, generation=number)
        return run_episode(
            self._task.agent,
            self._env,
            row,
            number,
            [rng],
            buffers=buffers,
            max_env_steps=max_env_steps,
            collector=collector,
        )


def find_action_range(env: BatchEnv) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest action of an environment without its wrappers."""
    inner: Any = env
    while hasattr(inner, "env"):
        inner = inner.env
    space = inner.action_space
    return space.low, space.high
