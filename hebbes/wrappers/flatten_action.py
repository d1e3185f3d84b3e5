"""FlattenAction: actions with several axes, or with none, become vectors."""

from gymnasium.spaces import Box

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper, require_float_actions


class FlattenAction(BatchWrapper):
    """Takes actions as vectors, in C order. Each number keeps its own bounds."""

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        space = require_float_actions(env, "FlattenAction")
        self._shape = space.shape
        self.action_space = Box(space.low.ravel(), space.high.ravel(), dtype=space.dtype.type)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` with actions in the inner environment's shape."""
        return self.env.step(actions.reshape(len(actions), *self._shape), active)
