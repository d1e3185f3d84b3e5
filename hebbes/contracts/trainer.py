"""Trainer: searches for a policy, one unit at a time. `hebbes.training.lifecycle` does everything else in a run.

A unit is the least work after which a run can be saved: a generation, one finished individual, an episode.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.engine import Engine
from hebbes.contracts.environment import Space
from hebbes.contracts.notices import Notice, describe_faults
from hebbes.contracts.plain_values import select_arrays
from hebbes.contracts.policy import Buffers, Policy
from hebbes.contracts.strategy import SearchMemory

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


class AllFailedError(RuntimeError):
    """Episodes failed in such a way that those of the next unit would fail too. `who` played them."""

    def __init__(self, who: str, faults: Mapping[str, int]):
        super().__init__(f"{who} failed: {describe_faults(faults)}")
        self.faults = faults


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
        if self.sha256:  # it has a file, whose size has been checked
            return
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
    """The large state. It is not copied after a unit, and read when a checkpoint is written."""

    def select_arrays(self, owner: str) -> dict[str, np.ndarray]:
        """The arrays of this owner, see the function of this name."""
        return select_arrays(owner, self.arrays)


@dataclass(frozen=True)
class UnitResult:
    """What a unit has brought."""

    env_steps: int
    """Env steps of this unit alone."""
    metrics: Mapping[str, float]
    """Columns for the row of metrics.csv. All units have the same columns. Values may be NaN."""
    notices: Sequence[Notice] = ()
    """Lines for the user, which are printed twice at most for each problem."""


@dataclass(frozen=True, kw_only=True)
class SearchSize:
    """The quantities of a trainer's search that the memory of its run depends on."""

    population_size: int
    """The largest number of members that are evaluated together, without the trainer's own policy."""
    episodes_per_member: int = 1
    rank: int = 0
    """Rank of the factors that the members' weights are given by. 0: all weights are given."""
    noise_bytes: int = 0
    """Bytes of other members' noise that a thread keeps to make a member's noise."""
    members_per_seed: int | None = None
    """How many consecutive members share their start states. None: all members do."""
    grows: bool = False
    """Whether members are added to the population within a unit."""
    worker_jobs: int = 0
    """Number of jobs other than chunks of episodes that worker processes may do at the same time."""
    worker_bytes: int = 0
    """Bytes that such a job leaves in its process."""
    options: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Option that could save memory -> the field that holds its value, and its least value."""

    @property
    def advice(self) -> str:
        """What helps if none of the options saves enough memory."""
        return "a smaller policy (policy, hidden_sizes) needs less"

    def estimate_memory(self) -> SearchMemory:
        """The memory of the search itself, without the engine's and that of segments."""
        return SearchMemory(0, 0, 0)

    def count_segment_bytes(self) -> int:
        """Bytes of all segments."""
        return 0


class Trainer(ABC):
    """A search for a policy.

    The module of a trainer is imported to read its options. So it must not import a simulator, a compiler or torch.
    """

    Options: ClassVar[type[Any]]
    """The dataclass of its options. `policy` names the policy, and an option of the name `method_kind` the method."""
    owner: ClassVar[str]
    """The word before the dot in the full names of its options."""
    method_kind: ClassVar[str] = ""
    """Kind of class, as `find_class` takes it, that does the search, such as "strategy". The options in its `Settings`
    are options of the run. Empty: the trainer searches by itself."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Options of other parts of a run -> the default that they have with this trainer. Those of a method's class, if it
    has any, come first."""
    tuned_with_method: ClassVar[tuple[str, ...]] = ()
    """Its options that are tuned together with the method. They do not outlive the choice of another one."""
    unit: str
    """What a unit is called, such as "generation". It names the first column of metrics.csv."""
    eval_counter: ClassVar[Counter] = "units"
    """What the options `eval_every` and `print_every` count."""
    num_units: int | None = None
    """Number of units after which training ends. None: no such limit."""

    def __str__(self) -> str:
        """What messages call it."""
        return f"trainer {self.owner!r}"

    @abstractmethod
    def __init__(self, config: Any, task: Any, weights: Float32[np.ndarray, " params"], buffers: Buffers):
        """Starts from these weights and buffers; ValueError if the options do not fit together.

        `config` is a `hebbes.training.config.TrainConfig`, and `task` a `hebbes.execution.chunks.Task`.
        """

    @classmethod  # noqa: B027  # any spaces will do
    def check_spaces(cls, config: Any, observation_space: Space, action_space: Space) -> None:
        """ValueError if the trainer cannot train in an environment with these spaces, before wrappers."""

    @classmethod
    def normalizes_observations(cls, config: Any) -> bool:
        """Whether the policy's buffers hold the running mean and variance of observations."""
        return False

    @classmethod
    def measure_search(cls, config: Any, policy: Policy) -> SearchSize:
        """The quantities that memory depends on, before anything large is made."""
        return SearchSize(population_size=1)

    @abstractmethod
    def advance(self, progress: Progress, engine: Engine) -> UnitResult:
        """Does the next unit, given the progress before it.

        An exception ends the run. It, or a signal, may leave the trainer in any state, because it is then thrown away.
        Raises FloatingPointError if the search has diverged, and AllFailedError if episodes failed for good. A segment
        that is too large ends the run in one line too.
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

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Frees what the trainer holds besides the engine, such as a simulator of its own."""
