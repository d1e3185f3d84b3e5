"""One environment in the process of a run, for methods that learn while an episode goes on."""

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import Float32

from hebbes.contracts.errors import convert_foreign_exits
from hebbes.contracts.policy import Buffers
from hebbes.contracts.randomness import Purpose, derive_simulator_seed, make_generator
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.execution.chunks import Task
from hebbes.execution.episode import EpisodeResult, run_episode
from hebbes.execution.transitions import Collector
from hebbes.hybrids.core.settings import Bounds


class Episodes:
    """Plays training episodes of one member, one after another."""

    def __init__(self, task: Task) -> None:
        """Makes the simulator."""
        self._task = task
        seed = derive_simulator_seed(task.seed, Purpose.TRAINING)
        self._env = make_batch_env(task.environment, [seed], threads=1, training=True)

    def play(
        self,
        row: Float32[np.ndarray, "1 params"],
        buffers: Buffers,
        number: int,
        collector: Collector,
        max_episode_steps: int | None,
    ) -> EpisodeResult:
        """Plays the episode of this number. The collector may change the row in place.

        EngineError for a mistake of a user's wrapper, ForeignExitError if the simulator calls `sys.exit`.
        """
        rng = make_generator(self._task.seed, Purpose.TRAINING, generation=number)
        with convert_foreign_exits():
            return run_episode(
                self._task.agent,
                self._env,
                row,
                number,
                [rng],
                buffers=buffers,
                max_episode_steps=max_episode_steps,
                collector=collector,
            )

    def close(self) -> None:
        """Frees the simulator."""
        self._env.close()


def find_action_bounds(task: Task) -> Bounds:
    """The lowest and the highest actions of the task's environment without its wrappers.

    ValueError if a wrapper has other actions than the environment, whose range the gradients need.
    """
    env = make_batch_env(task.environment, [0], threads=1, training=True)
    outermost: Any = env.action_space
    innermost: Any = env
    while hasattr(innermost, "env"):
        innermost = innermost.env
    space = innermost.action_space
    env.close()
    if isinstance(outermost, Discrete) or np.prod(outermost.shape) != np.prod(space.shape):
        raise ValueError(f"gradients need the environment's own actions, {space}, but a wrapper takes {outermost}")
    return space.low.astype(np.float32).ravel(), space.high.astype(np.float32).ravel()
