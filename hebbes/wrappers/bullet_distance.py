"""BulletDistance: rewards a Bullet walker only for its progress, as the reference's AntBullet experiments do.

It is a `gymnasium.Wrapper`, because it reads the simulator's own terms of the reward. So it is given in
`gymnasium_wrappers`.
"""

from typing import Any

import gymnasium


class BulletDistance(gymnasium.Wrapper):
    """The reward is the environment's own progress term. One unit is 0.0165 m; moving backward is negative."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        if not str(getattr(env.spec, "entry_point", "")).startswith("pybullet_envs_gymnasium.gym_locomotion_envs"):
            raise ValueError(f"bullet_distance needs a Bullet walker such as AntBulletEnv-v0, got {env}")

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps and rewards progress, which is the second of the walker's five reward terms."""
        observation, _, terminated, truncated, info = self.env.step(action)
        progress = self.env.unwrapped.rewards[1]  # type: ignore[attr-defined]
        return observation, float(progress), terminated, truncated, info
