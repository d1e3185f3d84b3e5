"""An environment with a choice of spaces, for the tests of the whole project. Importing this registers `Spaces-v0`."""

from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Text, Tuple

ENV_ID = "Spaces-v0"

OBSERVATIONS: dict[str, Space] = {
    "vector": Box(-1, 1, (3,), np.float32),
    "dict": Dict(speed=Box(-np.inf, np.inf, (2, 2), np.float64), gear=Discrete(3, start=-1), lamps=MultiBinary(2)),
    "tuple": Tuple([Box(-1, 1, (2,), np.float32), MultiDiscrete([2, 3], start=[5, 1])]),
    "nested": Dict(
        a=Tuple([Dict(z=Box(-1, 1, (), np.float32), y=Discrete(2)), Box(0, 9, (2,), np.int64)]), b=Discrete(2)
    ),
    "binary": MultiBinary([2, 3]),
    "multi": MultiDiscrete([[2, 3], [4, 2]]),
    "counted": Discrete(4, start=2),
    "byte": Discrete(4, dtype=np.uint8),
    "half": Box(-1, 1, (3,), np.float16),
    "channels_first": Box(0, 255, (3, 24, 20), np.uint8),
    "small_image": Box(0, 255, (8, 6, 3), np.uint8),
    "text": Dict(a=Box(-1, 1), told=Text(5)),
}
"""Observation spaces, by the value of `observations`."""

ACTIONS: dict[str, Space] = {
    "real": Box(-1, 1, (2,), np.float32),
    "real_matrix": Box(np.array([[-1, -2, -3], [0, 0, 0]]), np.array([[1, 2, 3], [4, 5, 6]]), dtype=np.float64),
    "real_number": Box(-1, 1, (), np.float32),
    "half": Box(-1, 1, (2,), np.float16),
    "multi": MultiDiscrete([2, 3, 4], start=[0, -1, 7]),
    "multi_matrix": MultiDiscrete([[2, 3], [4, 2]]),
    "binary": MultiBinary(3),
    "counted": Discrete(3, start=5),
    "byte": Discrete(3, dtype=np.uint8),
    "whole": Box(np.array([-128, 0]), np.array([127, 3]), dtype=np.int8),
    "endless": Box(-np.inf, np.inf, (2,), np.int64),
    "huge": Box(0, 2**15, (1,), np.int32),
    "dict": Dict(a=Discrete(2)),
}
"""Action spaces, by the value of `actions`."""


class Spaces(gymnasium.Env):
    """Random observations of its space; the reward is the sum of the action. Episodes have four env steps."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, observations: str = "vector", actions: str = "real", render_mode: str | None = None) -> None:
        self.observation_space = deepcopy(OBSERVATIONS[observations])  # each has its own generator
        self.action_space = ACTIONS[actions]
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self._env_step = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action), f"action {action!r} not in {self.action_space}"
        self._env_step += 1
        return self.observation_space.sample(), float(np.sum(action)), self._env_step == 4, False, {}

    def render(self) -> np.ndarray:
        """A black image."""
        return np.zeros((32, 32, 3), np.uint8)


if ENV_ID not in gymnasium.registry:
    gymnasium.register(ENV_ID, entry_point=Spaces, disable_env_checker=True)
