"""ChooseAction: the policy's real outputs choose the integers of an action.

MultiDiscrete, Discrete, Box of integers: each number of the action has one output per value, from the lowest value to
the highest. The greatest output decides, the first one among equals. MultiBinary: each number has one output and is 1
if that is greater than 0. An action of several axes is filled in C order.
"""

from math import prod

import numpy as np
from jaxtyping import Shaped

from hebbes.contracts.environment import EnvStep, Space
from hebbes.wrappers.base import Actions, Active, BatchWrapper
from hebbes.wrappers.spaces import is_box, is_discrete, is_multi_binary, is_multi_discrete, make_box

MAX_OUTPUTS = 2**15
"""Outputs of all numbers together. After 64 hidden units they already need 2 million weights."""


class ChooseAction(BatchWrapper):
    """Has an unbounded Box action space with one real number per output of the policy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._space = space = self.env.action_space
        low, counts = find_value_ranges(space)
        if (num_outputs := sum(counts)) > MAX_OUTPUTS:
            raise ValueError(
                f"choose_action allows at most {MAX_OUTPUTS} values in total, but actions {space} have "
                f"{num_outputs}; offer fewer with a gymnasium.ActionWrapper of your own: "
                f"--gymnasium_wrappers package.module:Class"
            )
        self._low, self._counts = low, np.array(counts)
        self._first = np.cumsum(self._counts) - self._counts
        self._ranks = np.arange(num_outputs) - np.repeat(self._first, self._counts)
        self._is_binary = is_multi_binary(space)
        self.action_space = make_box(-np.inf, np.inf, (num_outputs,), dtype=np.float32)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` with the chosen actions."""
        chosen = actions > 0 if self._is_binary else self._choose_values(actions)
        chosen = chosen.astype(self._space.dtype, copy=False)
        return self.env.step(chosen.reshape(len(actions), *(self._space.shape or ())), active)

    def _choose_values(self, outputs: Actions) -> Shaped[np.ndarray, "active numbers"]:
        """For each number of the action, the value with the greatest output, the first one among equals."""
        greatest = np.repeat(np.maximum.reduceat(outputs, self._first, axis=1), self._counts, axis=1)
        ranks = np.minimum.reduceat(np.where(outputs < greatest, MAX_OUTPUTS, self._ranks), self._first, axis=1)
        return ranks.astype(self._low.dtype) + self._low  # if bytes overflow, the sum wraps around to the right value


def find_value_ranges(space: Space) -> tuple[Shaped[np.ndarray, " numbers"], list[int]]:
    """For each number of an action, its lowest value and its number of outputs."""
    if is_multi_binary(space):
        return np.zeros(space.shape, space.dtype).ravel(), [1] * prod(space.shape)
    if is_discrete(space):
        return np.array([space.start], space.dtype), [int(space.n)]
    if is_multi_discrete(space):
        return space.start.ravel(), space.nvec.ravel().tolist()
    if is_box(space) and space.dtype.kind != "f" and space.is_bounded():
        low, high = space.low.ravel(), space.high.ravel()
        return low, [int(last) - int(first) + 1 for first, last in zip(low, high, strict=True)]
    raise ValueError(
        f"choose_action needs actions of bounded integers, got {space}; offer these with a "
        f"gymnasium.ActionWrapper of your own: --gymnasium_wrappers package.module:Class"
    )
