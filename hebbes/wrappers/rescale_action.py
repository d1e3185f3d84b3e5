"""RescaleAction: actions in [-1, 1] are scaled to the bounds of the action space."""

import numpy as np

from hebbes.contracts.environment import EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper
from hebbes.wrappers.spaces import make_box, require_float_actions


class RescaleAction(BatchWrapper):
    """Clips actions to [-1, 1] and maps these linearly to the lower and upper bounds. NaN stays NaN."""

    def __post_init__(self) -> None:
        super().__post_init__()
        bounds = require_float_actions(self.env, "rescale_action")
        if not bounds.is_bounded():
            raise ValueError(f"rescale_action needs finite action bounds, got low={bounds.low}, high={bounds.high}")
        self._low = bounds.low.astype(np.float64)
        self._high = bounds.high.astype(np.float64)
        self.action_space = make_box(-1.0, 1.0, bounds.shape, dtype=bounds.dtype)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` with rescaled actions."""
        unit = np.clip(actions, -1.0, 1.0)
        rescaled = ((1.0 - unit) * self._low + (1.0 + unit) * self._high) / 2.0
        return self.env.step(rescaled.astype(self.action_space.dtype), active)
