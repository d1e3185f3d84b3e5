"""ChooseAction: a row of real numbers becomes the whole numbers of an action, each chosen among its values.

MultiDiscrete, Discrete, Box of integers: each number of the action has one output for each of its values, from the
least to the greatest; it is the value of the greatest output, the first of equals. MultiBinary: each number has one
output; it is 1 where that is greater than 0. An action of several axes is filled in C order.
"""

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from jaxtyping import Shaped

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.wrappers.base import Actions, Active, BatchWrapper

MAX_OUTPUTS = 2**15
"""Values to choose among in all; behind 64 hidden units they make 2 million weights already."""


class ChooseAction(BatchWrapper):
    """Shows the policy a Box of real numbers without bounds, as many as there are outputs."""

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)
        self._space = space = env.action_space
        low, counts = values_of(space)
        if not (num_outputs := counts.sum()) <= MAX_OUTPUTS:
            raise ValueError(
                f"whole numbers are chosen among at most {MAX_OUTPUTS} values in all, but actions {space} have "
                f"{num_outputs:.0f}; offer fewer with a gymnasium.ActionWrapper of yours: "
                f"--gymnasium_wrappers package.module:Class"
            )
        self._low, self._counts = low, counts.astype(np.int64)
        self._first = np.cumsum(self._counts) - self._counts
        self._ranks = np.arange(int(num_outputs)) - np.repeat(self._first, self._counts)
        self.action_space = Box(-np.inf, np.inf, (int(num_outputs),), np.float32)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the copies named with the actions chosen."""
        chosen = actions > 0 if isinstance(self._space, MultiBinary) else self._of_greatest(actions)
        chosen = chosen.astype(self._space.dtype, copy=False)
        return self.env.step(chosen.reshape(len(actions), *(self._space.shape or ())), active)

    def _of_greatest(self, outputs: Actions) -> Shaped[np.ndarray, "active numbers"]:
        """Each number's value of the greatest output, the first of equals."""
        greatest = np.repeat(np.maximum.reduceat(outputs, self._first, axis=1), self._counts, axis=1)
        ranks = np.minimum.reduceat(np.where(outputs < greatest, MAX_OUTPUTS, self._ranks), self._first, axis=1)
        return ranks.astype(self._low.dtype) + self._low  # where bytes overflow, the sum wraps around to what is meant


def values_of(space: Space) -> tuple[Shaped[np.ndarray, " numbers"], Shaped[np.ndarray, " numbers"]]:
    """Of each number of an action, the least value and for how many values it has outputs."""
    match space:
        case MultiBinary():
            return np.zeros(space.shape, space.dtype).ravel(), np.ones(space.shape).ravel()
        case Discrete():
            return np.array([space.start], space.dtype), np.array([space.n])
        case MultiDiscrete():
            return space.start.ravel(), space.nvec.ravel()
        case Box() if space.dtype.kind != "f" and space.is_bounded():
            return space.low.ravel(), space.high.ravel().astype(np.float64) - space.low.ravel() + 1
    raise ValueError(
        f"ChooseAction needs actions of whole numbers within bounds, got {space}; offer such with a "
        f"gymnasium.ActionWrapper of yours: --gymnasium_wrappers package.module:Class"
    )
