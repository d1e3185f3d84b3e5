"""Trainer: searches for a policy, one unit at a time. `hebbes.training.lifecycle` does everything else in a run.

A unit is the least work after which a run can be saved: a generation, one finished individual, an episode.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.engine import Engine
from hebbes.contracts.policy import Buffers

MAX_SEGMENT_BYTES = 2**30
MAX_VALUES_LENGTH = 2**17
"""Largest length of a trainer's values as JSON. The header of a checkpoint holds them."""

Counter: TypeAlias = Literal["units", "env_steps"]
"""A field of `Progress` that counts."""


@dataclass(frozen=True)
class Snapshot:
    """A policy at a moment of its training."""

    units: int
    env_steps: int
    score: float
    """Mean return over fresh episodes. NaN if the policy was not evaluated or an episode failed."""
    weights: Float32[np.ndarray, " params"]
    buffers: Buffers


@dataclass(frozen=True)
class Progress:
    """How far a run is. The lifecycle counts."""

    units: int = 0
    """Number of finished units."""
    env_steps: int = 0
    """Env steps of all finished units, without evaluations."""
    seconds: float = 0.0
    """Wall time of the training so far."""
    best: Snapshot | None = None
    """The policy with the best score so far."""


class SegmentSizeError(ValueError):
    """A segment is too large."""


@dataclass(eq=False)
class Segment:
    """Arrays that never change, such as a full block of a replay buffer. They are saved once, in a file of their own.

    The trainer keeps the object as long as it has the arrays. They may be views of a larger array whose other parts
    still change. SegmentSizeError for more than `MAX_SEGMENT_BYTES`.
    """

    arrays: Mapping[str, np.ndarray]
    sha256: str = ""
    """Checksum and name of its file. Empty until the first checkpoint that names it is written."""

    def __post_init__(self) -> None:
        size = sum(array.nbytes for array in self.arrays.values())
        if size > MAX_SEGMENT_BYTES:
            names = ", ".join(sorted(self.arrays))
            raise SegmentSizeError(f"a segment holds at most {MAX_SEGMENT_BYTES} bytes, got {size} in {names}")


@dataclass(frozen=True)
class TrainerState:
    """Everything that a trainer needs to continue with the same bits, in addition to options and `Progress`."""

    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Small arrays, some hundred at most. They are copied after each unit, so that a stop in the next can save them."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values for JSON, of at most `MAX_VALUES_LENGTH` characters together. NaN is allowed. They are copied too."""
    segments: Mapping[str, Segment] = field(default_factory=dict)
    """The large state. It is never copied, and read when a checkpoint is written."""

    def select_arrays(self, owner: str) -> dict[str, np.ndarray]:
        """The arrays whose names begin with `owner` and a dot, without both."""
        return {name[len(owner) + 1 :]: array for name, array in self.arrays.items() if name.startswith(f"{owner}.")}


@dataclass(frozen=True)
class UnitResult:
    """What a unit has brought."""

    env_steps: int
    """Env steps of this unit alone."""
    metrics: Mapping[str, float]
    """Columns for the row of metrics.csv. All units have the same columns. Values may be NaN."""
    notice: str = ""
    """A line for the user. Empty if there is nothing to say."""


class Trainer(ABC):
    """A search for a policy."""

    unit: ClassVar[str]
    """What a unit is called, such as "generation". It names the first column of metrics.csv."""
    eval_counter: ClassVar[Counter] = "units"
    """What the option `eval_every` counts."""
    num_units: int | None = None
    """Number of units after which training ends. None: no such limit."""
    ending: str = ""
    """Why training ends by itself. Empty while it goes on."""

    @abstractmethod
    def advance(self, progress: Progress, engine: Engine) -> UnitResult:
        """Does the next unit, given the progress before it.

        An exception ends the run. It, or a signal, may leave the trainer in any state, because it is then thrown away.
        Raises FloatingPointError if the search has diverged. A segment that is too large ends the run in one line too.
        """

    @property
    @abstractmethod
    def policy(self) -> tuple[Float32[np.ndarray, " params"], Buffers]:
        """Weights and buffers of the policy that the trainer would hand out now. The buffers are never changed."""

    @abstractmethod
    def get_state(self) -> TrainerState:
        """The state between two units."""

    @abstractmethod
    def set_state(self, state: TrainerState) -> None:
        """Continues from what `get_state` returned; ValueError or KeyError for the state of another trainer."""
