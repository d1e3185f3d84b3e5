"""Jobs, and the places of the workers that do them, as the dispatch keeps them."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from hebbes.contracts.engine import EngineError
from hebbes.execution.transport import Cause, Worker

MAX_TRIES: Mapping[Cause, int] = {"call": 2, "unknown": 5}
"""Number of workers that a job may lose in this way, the last of which gives it up. Other losses never do."""


@dataclass(frozen=True)
class TimeLimit:
    """How long a job may take on a worker that has warmed up for it. It never waits for a thread of the worker."""

    seconds: float
    reason: str
    """Why a job that takes longer is given up."""
    warm_up: Sequence[Any]
    """Arguments of a shorter call, which a worker does first: it makes simulators and compiles."""
    prepares: Hashable = None
    """What the warm-up makes. A worker warms up once for all jobs of which this is equal."""
    extra_seconds: float = 0.0
    """How much longer than the start of a worker the warm-up may take."""


@dataclass(eq=False)
class Job:
    """A call that some worker is to do."""

    ticket: int
    function: Callable[..., Any]
    arguments: Sequence[Any]
    home: int | None
    limit: TimeLimit | None
    give_up: Callable[[str], Any]
    losses: Counter[Cause] = field(default_factory=Counter)
    """Number of workers that were lost with it."""
    seconds: float | None = None
    """How long it took. None: it is not done."""


@dataclass(eq=False)
class Call:
    """A job that a worker has been given. Others may have the same job."""

    job: Job
    begun: float
    deadline: float = inf
    """When to look whether the worker hangs, or when it is lost because the job has a time limit."""
    is_warming_up: bool = False


@dataclass(eq=False)
class Seat:
    """The place of a worker. If it is lost, another one gets its place."""

    number: int
    worker: Worker
    begun: float
    calls: dict[int, Call] = field(default_factory=dict)
    """What the worker does, by ticket. Another one may have done it already."""
    has_started: bool = False
    warmed_up: set[Hashable] = field(default_factory=set)
    """For which jobs it has warmed up, by `TimeLimit.prepares`."""


def end_dispatch(reason: str) -> Any:
    """Gives a job up with all others."""
    raise EngineError(f"a job has lost too many workers, the last one: {reason}")
