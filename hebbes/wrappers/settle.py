"""Settle: lets a robot come to rest before its policy acts.

After Najarro & Risi's code (NeurIPS 2020, arXiv 2007.02686), where AntBullet settles for 40 env steps. Departure: the
policy first acts on the observation after them, theirs on the one from before.
"""

from dataclasses import dataclass

import numpy as np

from hebbes.contracts.option import option
from hebbes.wrappers.base import Observations
from hebbes.wrappers.spaces import is_box, is_multi_binary
from hebbes.wrappers.start_actions import StartActions


@dataclass(eq=False, kw_only=True)
class Settle(StartActions):
    """Begins every episode with `num_steps` zero actions and drops their rewards."""

    num_steps: int = option(
        0, "env steps of zero action at the start of every episode", range="in [0, 100000]", flag="settle_steps"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        space = self.env.action_space
        self._zero = np.zeros(space.shape or (), np.dtype(space.dtype))
        if not (is_box(space) or is_multi_binary(space)) or not space.contains(self._zero):
            raise ValueError(
                f"settle_steps needs Box or MultiBinary actions that can be 0, got {space}; leave the option out"
            )

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and returns the observations after the zero actions."""
        if self.num_steps == 0:
            return super().start(episode)
        return self.play(episode, self._zero, self.num_steps).observations
