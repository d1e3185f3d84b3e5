"""FlattenAction: actions that are an array of several axes, or of none, are shown as one row of numbers."""

from gymnasium.spaces import Box

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper, float_box_actions


class FlattenAction(BatchWrapper):
    """Takes the numbers of an action in one row, in C order, each within its own bounds."""

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        space = float_box_actions(env, "FlattenAction")
        self._shape = space.shape
        self.action_space = Box(space.low.ravel(), space.high.ravel(), dtype=space.dtype.type)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the copies named with their actions in the shape of the environment inside."""
        return self.env.step(actions.reshape(len(actions), *self._shape), active)
