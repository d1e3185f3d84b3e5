"""ClipAction: actions are clipped to the bounds of the action space."""

import numpy as np
from gymnasium.spaces import Box

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper, require_float_actions


class ClipAction(BatchWrapper):
    """Takes any real action and steps with the nearest allowed one. NaN stays NaN."""

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        self._bounds = require_float_actions(env, "ClipAction")
        self.action_space = Box(-np.inf, np.inf, self._bounds.shape, self._bounds.dtype.type)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` with clipped actions."""
        clipped = np.clip(actions, self._bounds.low, self._bounds.high)
        return self.env.step(clipped.astype(self._bounds.dtype, copy=False), active)
