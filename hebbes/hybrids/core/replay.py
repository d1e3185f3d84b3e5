"""Replay: the latest transitions of a run, from which batches are drawn uniformly.

Lin 1992, "Self-improving reactive agents based on reinforcement learning, planning and teaching", Machine Learning 8.
A transition is a row of float32 numbers: observation, action, next observation, reward, and 0 if it ended in a terminal
state, else 1. When the buffer is full, a new row replaces the oldest. Checkpoints keep blocks of rows as segments, so
that a block is written once, not with every checkpoint.
"""

from collections.abc import Mapping
from weakref import WeakSet

import numpy as np
import torch
from jaxtyping import Float32

from hebbes.contracts.engine import Transitions
from hebbes.contracts.trainer import Segment
from hebbes.hybrids.core.actor_critic import Batch
from hebbes.hybrids.core.settings import count_row_bytes

BLOCK = 2**14
"""Rows of a segment."""


class Replay:
    """A ring of transitions. Memory is taken as it fills."""

    def __init__(self, capacity: int, observation_size: int, action_size: int):
        self._sizes = (observation_size, action_size)
        self._rows = np.empty((capacity, count_row_bytes(observation_size, action_size) // 4), np.float32)
        self._drawn = np.empty((0, self._rows.shape[1]), np.float32)
        self._segments: dict[int, Segment] = {}
        self._views: dict[int, WeakSet[Segment]] = {}
        self.count = 0
        """Transitions added so far."""

    def __len__(self) -> int:
        return min(self.count, len(self._rows))

    def add(self, transitions: Transitions) -> None:
        """Adds transitions in their order."""
        rows = np.concatenate(
            [
                transitions.observations.reshape(len(transitions), -1),
                transitions.actions.reshape(len(transitions), -1),
                transitions.next_observations.reshape(len(transitions), -1),
                transitions.rewards[:, np.newaxis],
                ~transitions.terminated[:, np.newaxis],
            ],
            axis=1,
            dtype=np.float32,
            casting="unsafe",
        )
        while len(rows):
            start = self.count % len(self._rows)
            stop = min(start + len(rows), len(self._rows), (start // BLOCK + 1) * BLOCK)
            self._release(start // BLOCK)
            self._rows[start:stop], rows = rows[: stop - start], rows[stop - start :]
            self.count += stop - start

    def draw(self, rng: np.random.Generator, batch_size: int) -> Batch:
        """A batch of transitions, drawn with replacement. The next draw overwrites it."""
        if len(self._drawn) != batch_size:
            self._drawn = np.empty((batch_size, self._rows.shape[1]), np.float32)
        places = rng.integers(len(self), size=batch_size)
        drawn = torch.from_numpy(self._rows.take(places, axis=0, out=self._drawn, mode="clip"))
        observation, action = self._sizes
        following = observation + action
        return Batch(
            observations=drawn[:, :observation],
            actions=drawn[:, observation:following],
            next_observations=drawn[:, following : following + observation],
            rewards=drawn[:, -2],
            continues=drawn[:, -1],
        )

    def get_segments(self) -> dict[str, Segment]:
        """The rows, block by block. Blocks that have not changed since the last call are the same objects."""
        for block in range(-(-len(self) // BLOCK)):
            rows = self._rows[block * BLOCK : min((block + 1) * BLOCK, len(self))]
            if block not in self._segments or len(self._segments[block].arrays["rows"]) != len(rows):
                self._segments[block] = self._make_segment(block, rows)
        return {f"block{block}": segment for block, segment in self._segments.items()}

    def set_segments(self, segments: Mapping[str, Segment], count: int) -> None:
        """Continues from what `get_segments` returned, after `count` transitions; ValueError if they do not fit."""
        self.count, self._segments, self._views = count, {}, {}
        for block in range(-(-len(self) // BLOCK)):
            rows = self._rows[block * BLOCK : min((block + 1) * BLOCK, len(self))]
            saved = segments[f"block{block}"].arrays["rows"]
            if saved.shape != rows.shape or saved.dtype != rows.dtype:
                raise ValueError(f"block {block} of the replay is {saved.dtype} {saved.shape}, expected {rows.shape}")
            rows[:] = saved
            self._segments[block] = self._make_segment(block, rows, segments[f"block{block}"].sha256)

    def _make_segment(self, block: int, rows: Float32[np.ndarray, "rows numbers"], sha256: str = "") -> Segment:
        segment = Segment({"rows": rows}, sha256)
        self._views.setdefault(block, WeakSet()).add(segment)
        return segment

    def _release(self, block: int) -> None:
        """Gives the block's segments copies of their own, if rows will be overwritten: segments never change."""
        if self.count >= len(self._rows):
            self._segments.pop(block, None)
            for segment in self._views.pop(block, ()):
                segment.arrays = {"rows": segment.arrays["rows"].copy()}
