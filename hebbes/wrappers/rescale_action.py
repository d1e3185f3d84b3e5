"""RescaleAction: actions in [-1, 1] are stretched to the bounds of the action space."""

import numpy as np
from gymnasium.spaces import Box

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper, float_box_actions


class RescaleAction(BatchWrapper):
    """Clips actions to [-1, 1] and maps -1 to the lower bound, 1 to the upper, linearly between; NaN stays NaN."""

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        bounds = float_box_actions(env, "RescaleAction")
        if not bounds.is_bounded():
            raise ValueError(f"RescaleAction needs finite action bounds, got low={bounds.low}, high={bounds.high}")
        self._low = bounds.low.astype(np.float64)
        self._high = bounds.high.astype(np.float64)
        self.action_space = Box(-1.0, 1.0, bounds.shape, bounds.dtype.type)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the copies named with their actions stretched."""
        unit = np.clip(actions, -1.0, 1.0)
        stretched = ((1.0 - unit) * self._low + (1.0 + unit) * self._high) / 2.0
        return self.env.step(stretched.astype(self.action_space.dtype), active)
