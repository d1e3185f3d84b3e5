"""BulletGrace: a Bullet walker may lie on the floor for a while before that ends its episode.

Zero actions let AntBullet sink to the floor within 20 env steps, which for the simulator is the end. Najarro & Risi's
experiments start from there: 40 env steps to settle, then 200 in which the policy may get up (NeurIPS 2020). A
`gymnasium.Wrapper`, so that the settling is part of what it sees.
"""

from typing import Any

import gymnasium

GRACE_STEPS = 240
"""Env steps from the reset in which no fall ends the episode."""


class BulletGrace(gymnasium.Wrapper):
    """The environment, whose terminations are passed over in the first `GRACE_STEPS` env steps."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self._env_steps = 0

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begins an episode and its grace."""
        self._env_steps = 0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps; terminated only past the grace."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._env_steps += 1
        return observation, reward, terminated and self._env_steps > GRACE_STEPS, truncated, info
