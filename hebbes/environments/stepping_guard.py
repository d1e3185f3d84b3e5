"""What both back ends know of their copies: seeds of episodes, and what may be stepped."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from jaxtyping import Bool, Int, Shaped


def episode_seeds(seeds: Sequence[int], episode: int) -> list[int]:
    """A seed in [0, 2^31) for each copy's episode, a function of the copy's seed and the episode number alone."""
    drawn = {seed: int(np.random.SeedSequence((seed, episode)).generate_state(1)[0] >> np.uint32(1)) for seed in seeds}
    return [drawn[seed] for seed in seeds]


def check_episode(episode: int) -> None:
    """Refuses a negative episode number."""
    if episode < 0:
        raise ValueError(f"episode must be >= 0, got {episode}")


def allowed_range(space: Space) -> tuple[Any, Any] | None:
    """The least and the greatest action, both allowed, for each number of it; None for real numbers.

    The wrappers keep real numbers within their bounds.
    """
    match space:
        case Discrete():
            return int(space.start), int(space.start + space.n - 1)
        case MultiDiscrete():
            return space.start, space.start + space.nvec - 1
        case MultiBinary():
            return 0, 1
        case Box() if space.dtype.kind != "f":
            return space.low, space.high
    return None


class Copies:
    """Guards every step: a simulator in C++ would crash on, or play on after, what is refused here."""

    def __init__(self, num_copies: int, action_space: Space, action_dtype: np.dtype) -> None:
        self._action_space, self._range = action_space, allowed_range(action_space)
        self._action_dtype = action_dtype
        self._ended = np.ones(num_copies, np.bool_)

    def begin(self) -> None:
        """All copies are at the start of an episode."""
        self._ended[:] = False

    def end(self, ids: Int[np.ndarray, " active"], done: Bool[np.ndarray, " active"]) -> None:
        """The episodes of these copies have ended, where `done` says so."""
        self._ended[ids] = done

    def named(self, active: Int[np.ndarray, " active"]) -> Int[np.ndarray, " active"]:
        """`active` as contiguous int32; ValueError unless it names distinct copies whose episode goes on."""
        ids = np.asarray(active).astype(np.int32, order="C", casting="same_kind", copy=False)
        try:
            ended = self._ended[ids.view(np.uint32)]  # a negative id turns huge, so both ends raise
        except IndexError:
            raise ValueError(f"active must name copies in 0..{len(self._ended) - 1}, got {active}") from None
        if ended.any():
            raise ValueError(f"active names copies whose episode has ended or not begun: {ids[ended]}")
        if ids.ndim != 1 or not ids.size or (not (ids[1:] > ids[:-1]).all() and len(np.unique(ids)) != len(ids)):
            raise ValueError(f"active must be a row of distinct copies, at least one, got {active}")
        return ids

    def checked(self, actions: Shaped[np.ndarray, "active ..."], count: int) -> Shaped[np.ndarray, "active ..."]:
        """`actions`, one a copy, contiguous and in the simulator's dtype."""
        actions = np.asarray(actions)
        space = self._action_space
        if actions.shape != (count, *(space.shape or ())):
            raise ValueError(f"actions must have shape {(count, *(space.shape or ()))}, got {actions.shape}")
        actions = actions.astype(self._action_dtype, order="C", casting="same_kind", copy=False)
        if self._range is not None and not ((actions >= self._range[0]) & (actions <= self._range[1])).all():
            raise ValueError(f"actions must be in {space}, got {actions}")
        return actions
