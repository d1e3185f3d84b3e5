"""BulletGrace: a Bullet robot that falls early in an episode does not end it.

Najarro & Risi's code (NeurIPS 2020, arXiv 2007.02686) ignores a Bullet robot's falls in the first 201 env steps of the
policy: an episode ends at the 202nd at the earliest. Before these, AntBullet takes 40 env steps of zero actions and
sinks to the floor, which is a fall for the simulator. This is a `gymnasium.Wrapper`, so that it counts those env steps
too.
"""

from typing import Any

import gymnasium

from hebbes.contracts.option import check_argument

FORMER_GRACE_STEPS = 240
"""The number with which policy files that give none were trained."""


class BulletGrace(gymnasium.Wrapper):
    """Ignores terminations in the first `grace_steps` env steps after a reset."""

    def __init__(self, env: gymnasium.Env, grace_steps: int = FORMER_GRACE_STEPS) -> None:
        super().__init__(env)
        self._grace_steps = check_argument("grace_steps", grace_steps, int, range=">= 0")
        self._env_steps = 0

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begins an episode and its grace period."""
        self._env_steps = 0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps. Terminates only after the grace period."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._env_steps += 1
        return observation, reward, terminated and self._env_steps > self._grace_steps, truncated, info
