"""BulletGrace: a fall of a Bullet robot ends no episode at its start.

Najarro & Risi's code (NeurIPS 2020, arXiv 2007.02686) does not look at a Bullet robot's falls in the first 201 env
steps of the policy: an episode ends at the 202nd at the earliest. Before these, AntBullet gets 40 env steps of zero
actions, which let it sink to the floor; for the simulator that is a fall. A `gymnasium.Wrapper`, so that the settling
is part of what it sees.
"""

from typing import Any

import gymnasium

from hebbes.wrappers.base import check_integer

FORMER_GRACE_STEPS = 240
"""What policy files that name no number were trained with."""


class BulletGrace(gymnasium.Wrapper):
    """The environment, whose terminations are passed over in the first `grace_steps` env steps after a reset."""

    def __init__(self, env: gymnasium.Env, grace_steps: int = FORMER_GRACE_STEPS) -> None:
        super().__init__(env)
        check_integer("grace_steps", grace_steps, at_least=0)
        self._grace_steps = grace_steps
        self._env_steps = 0

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begins an episode and its grace."""
        self._env_steps = 0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps; terminated only past the grace."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._env_steps += 1
        return observation, reward, terminated and self._env_steps > self._grace_steps, truncated, info
