"""FlattenAction: actions with several axes, or with none, become vectors."""

from hebbes.contracts.environment import EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper
from hebbes.wrappers.spaces import make_box, require_float_actions


class FlattenAction(BatchWrapper):
    """Takes actions as vectors, in C order. Each number keeps its own bounds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        space = require_float_actions(self.env, "flatten_action")
        self._shape = space.shape
        self.action_space = make_box(space.low.ravel(), space.high.ravel(), dtype=space.dtype)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` with actions in the inner environment's shape."""
        return self.env.step(actions.reshape(len(actions), *self._shape), active)
