"""What both back ends share: seeds of episodes, and checks before every env step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Bool, Int, Shaped

from hebbes.contracts.environment import Space
from hebbes.contracts.randomness import derive_seed
from hebbes.environments.kernels import guard
from hebbes.environments.step_results import find_listed_range


def derive_episode_seeds(seeds: Sequence[int], episode: int) -> list[int]:
    """One seed in [0, 2^31) per sub-environment, which depends only on its own seed and the episode number."""
    drawn = {seed: derive_seed(seed, episode) for seed in seeds}
    return [drawn[seed] for seed in seeds]


def check_episode(episode: int) -> None:
    """Raises ValueError for a negative episode number."""
    if episode < 0:
        raise ValueError(f"episode must be >= 0, got {episode}")


def find_allowed_range(space: Space) -> tuple[Any, Any] | None:
    """The least and the greatest action, both allowed; None for real numbers, which wrappers keep within bounds."""
    return (space.low, space.high) if isinstance(space, Box) and space.dtype.kind != "f" else find_listed_range(space)


class EndedError(ValueError):
    """An env step in sub-environments whose episode has ended or not begun."""

    def __init__(self, ids: Sequence[int]):
        super().__init__(f"active names sub-environments whose episode has ended or not begun: {ids}")
        self.ids = set(ids)


class SteppingGuard:
    """Checks every env step. Without it, a simulator in C++ would crash, or go on after the end of an episode."""

    def __init__(self, num_envs: int, action_space: Space, action_dtype: np.dtype) -> None:
        self._action_space, self._range = action_space, find_allowed_range(action_space)
        self._action_dtype = action_dtype
        self._ended = np.ones(num_envs, np.bool_)

    def begin_episodes(self) -> None:
        """Notes that all sub-environments are at the start of an episode."""
        self._ended[:] = False

    def end_episodes(self, ids: Int[np.ndarray, " active"], done: Bool[np.ndarray, " active"]) -> None:
        """Notes which of these sub-environments have ended their episode."""
        guard.write_rows(ids, done, self._ended)

    def check_ids(self, active: Int[np.ndarray, " active"]) -> Int[np.ndarray, " active"]:
        """`active` as contiguous int32; ValueError unless these are distinct sub-environments within an episode."""
        ids = np.asarray(active).astype(np.int32, order="C", casting="same_kind", copy=False)
        if ids.ndim != 1 or not guard.are_ascending_and_live(ids, self._ended):
            self._check_any_order(ids)
        return ids

    def _check_any_order(self, ids: Int[np.ndarray, "..."]) -> None:
        if ids.ndim != 1 or not ids.size or len(np.unique(ids)) != len(ids):
            raise ValueError(f"active must be a row of distinct sub-environments, at least one, got {ids}")
        if ids.min() < 0 or ids.max() >= len(self._ended):
            raise ValueError(f"active must name sub-environments in 0..{len(self._ended) - 1}, got {ids}")
        if self._ended[ids].any():
            raise EndedError(ids[self._ended[ids]].tolist())

    def check_actions(self, actions: Shaped[np.ndarray, "active ..."], count: int) -> Shaped[np.ndarray, "active ..."]:
        """`actions` as a contiguous array of the simulator's dtype; ValueError for a wrong shape or value."""
        actions = np.asarray(actions)
        space = self._action_space
        if actions.shape != (count, *(space.shape or ())):
            raise ValueError(f"actions must have shape {(count, *(space.shape or ()))}, got {actions.shape}")
        if self._range is not None and actions.dtype.kind in "biu":
            if not ((actions >= self._range[0]) & (actions <= self._range[1])).all():
                raise ValueError(f"actions must be in {space}, got {actions}")
        elif not np.can_cast(actions.dtype, self._action_dtype, "same_kind"):
            raise TypeError(f"actions must be of type {self._action_dtype}, got {actions.dtype}")
        return actions.astype(self._action_dtype, order="C", copy=False)
