"""ClipAction: actions are clipped to the bounds of the action space."""

import numpy as np

from hebbes.contracts.environment import EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper
from hebbes.wrappers.spaces import make_box, require_float_actions


class ClipAction(BatchWrapper):
    """Takes any real action and steps with the nearest allowed one. NaN stays NaN."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._bounds = require_float_actions(self.env, "clip_action")
        self.action_space = make_box(-np.inf, np.inf, self._bounds.shape, dtype=self._bounds.dtype)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` with clipped actions."""
        clipped = np.minimum(np.maximum(actions, self._bounds.low), self._bounds.high)  # faster than np.clip
        return self.env.step(clipped.astype(self._bounds.dtype, copy=False), active)
