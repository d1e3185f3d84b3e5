"""Replay: the latest transitions of a run, from which batches are drawn uniformly.

Lin 1992, "Self-improving reactive agents based on reinforcement learning, planning and teaching", Machine Learning 8.
A transition is a row of float32 numbers: observation, action, next observation, reward, and 0 if it ended in a terminal
state, else 1. When the buffer is full, a new row replaces the oldest. Checkpoints keep blocks of rows as segments, so
that a block is written once, not with every checkpoint.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any
from weakref import WeakSet

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.engine import Transitions
from hebbes.contracts.trainer import MAX_SEGMENT_BYTES, Segment
from hebbes.hybrids.core.actor_critic import Batch
from hebbes.hybrids.core.device import MirroredArray
from hebbes.hybrids.core.settings import count_row_bytes
from hebbes.hybrids.core.shared_array import ReceivedArray, SharedArray

BLOCK = 2**14
"""Rows of a segment, or fewer if it would be too large."""


class ReplayView:
    """The transitions of a replay at some moment, from which batches are drawn."""

    def __init__(self, memory: SharedArray, sizes: tuple[int, int], capacity: int, count: int):
        self._memory, self._rows = memory, memory.array
        self._sizes, self._capacity = sizes, capacity
        self._batches: dict[tuple[int, str], tuple[MirroredArray, Batch]] = {}
        self.count = count
        """Transitions added until then."""

    def __len__(self) -> int:
        return min(self.count, self._capacity)

    def __reduce__(self) -> tuple[Any, ...]:
        """How another process gets it, without the rows."""
        return ReplayView, (self._memory, self._sizes, self._capacity, self.count)

    @property
    def extent(self) -> tuple[tuple[int, int], int, int]:
        """What a view is made of, in addition to the rows."""
        return self._sizes, self._capacity, self.count

    def draw(self, rng: np.random.Generator, batch_size: int, device: str = "cpu") -> Batch:
        """A batch of transitions on this device, drawn with replacement. The next draw of this size overwrites it."""
        if (batch_size, device) not in self._batches:
            self._batches[batch_size, device] = self._make_batch(batch_size, device)
        drawn, batch = self._batches[batch_size, device]
        numbers = rng.integers(self.count - len(self), self.count, size=batch_size)
        self._rows.take(numbers % len(self._rows), axis=0, out=drawn.array, mode="clip")
        drawn.send()
        return batch

    def _make_batch(self, size: int, device: str) -> tuple[MirroredArray, Batch]:
        drawn = MirroredArray((size, self._rows.shape[1]), device)
        numbers = drawn.tensor
        observation, action = self._sizes
        following = observation + action
        batch = Batch(
            observations=numbers[:, :observation],
            actions=numbers[:, observation:following],
            next_observations=numbers[:, following : following + observation],
            rewards=numbers[:, -2],
            continues=numbers[:, -1],
        )
        return drawn, batch


class Replay(ReplayView):
    """A ring of transitions. Memory is taken as it fills.

    It has `slack` more rows than transitions that it keeps. Views stay whole until these are overwritten.
    """

    def __init__(self, capacity: int, observation_size: int, action_size: int, slack: int = 0):
        shape = capacity + slack, count_row_bytes(observation_size, action_size) // 4
        try:
            memory = SharedArray(shape)
        except OSError as error:  # a limit of the shell, for example
            size = 4 * prod(shape) / 1e6
            raise ValueError(f"replay_size {capacity} takes {size:.0f} MB, refused: {error.strerror}") from error
        super().__init__(memory, (observation_size, action_size), capacity, 0)
        self._block = max(1, min(BLOCK, MAX_SEGMENT_BYTES // (4 * shape[1])))
        self._segments: dict[int, Segment] = {}
        self._views: dict[int, WeakSet[Segment]] = {}

    def add(self, transitions: Transitions) -> None:
        """Adds transitions in their order."""
        self.add_rows(make_rows(transitions))

    def add_rows(self, rows: Float32[np.ndarray, "steps numbers"]) -> None:
        """Adds transitions, given as rows of the replay."""
        while len(rows):
            start = self.count % len(self._rows)
            stop = min(start + len(rows), len(self._rows), (start // self._block + 1) * self._block)
            self._release(start // self._block)
            self._rows[start:stop], rows = rows[: stop - start], rows[stop - start :]
            self.count += stop - start

    def make_view(self, count: int) -> ReplayView:
        """What the replay was after `count` transitions. Their rows must not have been overwritten since."""
        return ReplayView(self._memory, self._sizes, self._capacity, count)

    def keeps(self, count: int, num_added: int) -> bool:
        """Whether the view of this count stays whole if so many transitions are added."""
        return self.count + num_added - len(self._rows) <= max(0, count - self._capacity)

    def get_segments(self) -> dict[str, Segment]:
        """The rows, block by block in order. Blocks that have not changed since the last call are the same objects."""
        for block, rows in self._cut_into_blocks():
            if block not in self._segments or len(self._segments[block].arrays["rows"]) != len(rows):
                self._segments[block] = self._make_segment(block, rows)
        return {f"block{block}": self._segments[block] for block in sorted(self._segments)}

    def set_segments(self, segments: Mapping[str, Segment], count: int) -> None:
        """Continues from what `get_segments` returned, after `count` transitions; ValueError if they do not fit."""
        self.count, self._segments, self._views = count, {}, {}
        for block, rows in self._cut_into_blocks():
            saved = segments[f"block{block}"].arrays["rows"]
            if saved.shape != rows.shape or saved.dtype != rows.dtype:
                raise ValueError(f"block {block} of the replay is {saved.dtype} {saved.shape}, expected {rows.shape}")
            rows[:] = saved
            self._segments[block] = self._make_segment(block, rows, segments[f"block{block}"].sha256)

    def _cut_into_blocks(self) -> Iterator[tuple[int, Float32[np.ndarray, "rows numbers"]]]:
        """The rows that are filled, as views of each block."""
        filled = self._rows[: self.count]
        for block, start in enumerate(range(0, len(filled), self._block)):
            yield block, filled[start : start + self._block]

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


def join_segments(segments: Sequence[Segment], extent: tuple[tuple[int, int], int, int]) -> ReplayView:
    """A view of this extent on another machine, which has the segments of the replay, but not its memory."""
    return ReplayView(ReceivedArray(np.concatenate([each.arrays["rows"] for each in segments])), *extent)


def make_rows(transitions: Transitions) -> Float32[np.ndarray, "steps numbers"]:
    """Transitions as rows of a replay."""
    return np.concatenate(
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


def rescale_actions(transitions: Transitions, low: np.ndarray, high: np.ndarray) -> Transitions:
    """The transitions with their actions, in [-1, 1], in the environment's units."""
    half, center = (high - low) / 2, (low + high) / 2
    return replace(
        transitions, actions=np.clip(transitions.actions.reshape(len(transitions), -1), -1, 1) * half + center
    )
