"""TMaze: a T-maze whose rewarded arm changes within an episode, so that only reward tells what to do.

After the T-mazes of Soltoggio, Bullinaria, Mattiussi, Dürr & Floreano, "Evolutionary Advantages of Neuromodulated
Plasticity in Dynamic, Reward-based Scenarios", Artificial Life XI, 2008; walking is left out.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from jaxtyping import Float32

STEM, HOME, FIRST_JUNCTION = range(3)


class TMaze(gymnasium.Env):
    """One episode is a life of many trials: up the stem, left or right at the junction, home.

    A trial's reward is 1 in the good arm and -1 in the other, so that chance is a return of 0, and an env step without
    reward is like neither. The good arm is drawn at the start of a life and changes once, with a trial drawn from the
    middle third. Observations show the place alone, one-hot; actions count at the junction alone.

    Args:
        trials: trials of a life, at least 3.
        delay: env steps on the way home, with the last of which the reward comes; 0: it comes with the choice.
        junctions: mazes, whose junctions look different and whose good arms are drawn one by one; each trial's is
            drawn. All good arms change at the same trial.
    """

    def __init__(self, trials: int = 30, delay: int = 0, junctions: int = 1) -> None:
        for name, value, least in (("trials", trials, 3), ("delay", delay, 0), ("junctions", junctions, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
        self._trials, self._delay, self._junctions = trials, delay, junctions
        self._num_places = FIRST_JUNCTION + junctions
        self.observation_space = Box(0, 1, (self._num_places,), np.float32)
        self.action_space = Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32[np.ndarray, " places"], dict[str, Any]]:
        """A new life; `info` has each junction's first `good_arms` and the trial `change` from which the other is."""
        super().reset(seed=seed)
        self._good_arms = self.np_random.integers(2, size=self._junctions)
        self._change = int(self.np_random.integers(self._trials // 3, 2 * self._trials // 3))
        self._visits = self.np_random.integers(self._junctions, size=self._trials)
        self._trial = self._env_step = self._arm = 0
        return self._observation(), {"good_arms": self._good_arms.copy(), "change": self._change}

    def step(self, action: int) -> tuple[Float32[np.ndarray, " places"], float, bool, bool, dict[str, Any]]:
        """Goes to the next place; the trial's reward, if it ends with this env step."""
        if self._env_step == 1:
            self._arm = int(action)
        self._env_step += 1
        reward = 0.0
        if self._env_step == 2 + self._delay:
            good_arm = self._good_arms[self._visits[self._trial]] ^ (self._trial >= self._change)
            reward = 1.0 if self._arm == good_arm else -1.0
            self._trial, self._env_step = self._trial + 1, 0
        return self._observation(), reward, self._trial == self._trials, False, {}

    def _observation(self) -> Float32[np.ndarray, " places"]:
        observation = np.zeros(self._num_places, np.float32)
        if self._env_step == 1:
            observation[FIRST_JUNCTION + self._visits[self._trial]] = 1
        else:
            observation[HOME if self._env_step else STEM] = 1
        return observation
