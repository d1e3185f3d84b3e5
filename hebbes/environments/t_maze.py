"""TMaze: a T-maze whose rewarded arm changes during an episode, so that only the rewards tell where it is.

After the T-mazes of Soltoggio, Bullinaria, Mattiussi, Dürr & Floreano, "Evolutionary Advantages of Neuromodulated
Plasticity in Dynamic, Reward-based Scenarios", Artificial Life XI, 2008. Departure: walking is
left out.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from jaxtyping import Float32

STEM, HOME, FIRST_JUNCTION = range(3)
MOST = 100_000
"""Of trials, env steps of a delay, and junctions, because policy files may set them."""


class TMaze(gymnasium.Env):
    """An episode of many trials, each of them: up the stem, left or right at the junction, back home.

    A trial's reward is 1 in the good arm and -1 in the other. So the expected return of chance is 0, and an env step
    without a reward looks like neither arm. The good arm is drawn at the start of an episode, and changes once, at a
    trial drawn from the middle third. Observations show only the place, one-hot. Actions matter only at the junction.

    Args:
        trials: trials per episode, at least 3.
        delay: env steps on the way home. The reward comes with the last one; 0: with the choice.
        junctions: number of mazes, whose junctions look different. Each has its own random good arm, and each trial is
            in a random maze. All good arms change at the same trial.
    """

    def __init__(self, trials: int = 30, delay: int = 0, junctions: int = 1) -> None:
        for name, value, least in (("trials", trials, 3), ("delay", delay, 0), ("junctions", junctions, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
                raise ValueError(f"{name} must be an integer in [{least}, {MOST}], got {value!r}")
        self._trials, self._delay, self._junctions = trials, delay, junctions
        self._num_places = FIRST_JUNCTION + junctions
        self.observation_space = Box(0, 1, (self._num_places,), np.float32)
        self.action_space = Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32[np.ndarray, " places"], dict[str, Any]]:
        """A new episode; `info` has each junction's first `good_arms`, and `change`, the first trial with the other."""
        super().reset(seed=seed)
        self._good_arms = self.np_random.integers(2, size=self._junctions)
        self._change = int(self.np_random.integers(self._trials // 3, 2 * self._trials // 3))
        self._visits = self.np_random.integers(self._junctions, size=self._trials)
        self._trial = self._env_step = self._arm = 0
        return self._observe(), {"good_arms": self._good_arms.copy(), "change": self._change}

    def step(
        self, action: int | np.integer
    ) -> tuple[Float32[np.ndarray, " places"], float, bool, bool, dict[str, Any]]:
        """Goes to the next place. The trial's reward comes with its last env step."""
        if self._env_step == 1:
            self._arm = int(action)
        self._env_step += 1
        reward = 0.0
        if self._env_step == 2 + self._delay:
            good_arm = self._good_arms[self._visits[self._trial]] ^ (self._trial >= self._change)
            reward = 1.0 if self._arm == good_arm else -1.0
            self._trial, self._env_step = self._trial + 1, 0
        return self._observe(), reward, self._trial == self._trials, False, {}

    def _observe(self) -> Float32[np.ndarray, " places"]:
        observation = np.zeros(self._num_places, np.float32)
        if self._env_step == 1:
            observation[FIRST_JUNCTION + self._visits[self._trial]] = 1
        else:
            observation[HOME if self._env_step else STEM] = 1
        return observation
