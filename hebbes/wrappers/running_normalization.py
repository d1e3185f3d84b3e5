"""RunningNormalization: normalizes observations by a running mean and standard deviation over all their numbers.

As in pytorch-es and the A3C code of I. Kostrikov before it. Each sub-environment has two numbers: exponential averages
of each observation's mean and of its standard deviation. Both start at zero, with Adam's bias correction. Departure:
they are reset in every episode, because an episode must depend only on its seed and number. Theirs are never reset.
"""

from dataclasses import replace

import numpy as np

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.contracts.option import check_argument
from hebbes.wrappers.base import Actions, Active, BatchWrapper, Observations
from hebbes.wrappers.spaces import is_box, make_box

EPSILON = 1e-8


class RunningNormalization(BatchWrapper):
    """(x - mean) / (deviation + 1e-8) as float32. The averages include the current observation.

    `decay`, in [0, 1), is an argument and not an option: it has no flag.
    """

    def __init__(self, env: BatchEnv, *, decay: float = 0.9999) -> None:
        super().__init__(env)
        space = env.observation_space
        if not is_box(space) or not np.issubdtype(space.dtype, np.floating):
            raise ValueError(f"running_normalization needs a Box of floats, got {space}")
        self.observation_space = make_box(-np.inf, np.inf, space.shape, dtype=np.float32)
        self._decay = check_argument("decay", decay, float, range="in [0, 1)")
        self._means, self._deviations = np.zeros(env.num_envs), np.zeros(env.num_envs)
        self._counts = np.zeros(env.num_envs, np.int64)

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and resets the averages."""
        self._means[:] = self._deviations[:] = self._counts[:] = 0
        return self._normalize(super().start(episode), np.arange(self.num_envs))

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` and normalizes their observations."""
        env_step = self.env.step(actions, active)
        return replace(env_step, observations=self._normalize(env_step.observations, active))

    def _normalize(self, observations: Observations, active: Active) -> Observations:
        rows = observations.reshape(len(observations), -1).astype(np.float64)
        self._counts[active] += 1
        for averages, values in ((self._means, rows.mean(axis=1)), (self._deviations, rows.std(axis=1))):
            averages[active] = averages[active] * self._decay + values * (1 - self._decay)
        correction = 1 - self._decay ** self._counts[active]
        rows -= (self._means[active] / correction)[:, np.newaxis]
        rows /= (self._deviations[active] / correction)[:, np.newaxis] + EPSILON
        return rows.astype(np.float32).reshape(observations.shape)
