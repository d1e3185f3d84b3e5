"""Jobs, and the places of the workers that do them, as the dispatch keeps them."""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any, TypeAlias

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import say
from hebbes.execution.transport import Cause, Transport, Worker

Home: TypeAlias = tuple[Hashable, int]
"""A kind of jobs, and the number of a chunk or part. A worker that has started gets its share of each kind."""

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
    home: Home | None
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

    @property
    def arguments(self) -> Sequence[Any]:
        """What the worker is sent: the arguments of the warm-up, or those of the job."""
        return self.job.limit.warm_up if self.job.limit and self.is_warming_up else self.job.arguments


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

    def needs_warm_up(self, job: Job) -> bool:
        """Whether the job has a time limit, and the worker has not warmed up for it."""
        return job.limit is not None and job.limit.prepares not in self.warmed_up

    def end_warm_up(self, call: Call) -> None:
        """Notes that the worker has warmed up for the job of this call."""
        assert call.job.limit, "no other job needs it"
        self.warmed_up.add(call.job.limit.prepares)


class Seats(dict[int, Seat]):
    """The seats by number. It starts their workers, and says when there are none."""

    _is_stranded = False

    @property
    def num_started(self) -> int:
        """Number of workers that can do calls."""
        return sum(seat.has_started for seat in self.values())

    def start_workers(self, transport: Transport[Any], num_jobs: int) -> None:
        """Starts the workers that are needed for so many jobs in addition to those that workers have."""
        wanted = min(transport.num_workers, num_jobs + sum(len(seat.calls) for seat in self.values()))
        for number in count():
            if len(self) >= wanted:
                break
            if number not in self:
                self[number] = Seat(number, transport.start_worker(), time.monotonic())

    def say_if_stranded(self, since: float) -> None:
        """Says once that no worker is there: none can be started, or none that began before `since` has started."""
        is_stranded = all(seat.begun <= since and not seat.has_started for seat in self.values())
        if is_stranded != self._is_stranded:
            say("no worker has started; waiting (on a cluster, for a free CPU)" if is_stranded else "the work goes on")
        self._is_stranded = is_stranded


def end_dispatch(reason: str) -> Any:
    """Gives a job up with all others."""
    raise EngineError(f"a job has lost too many workers, the last one: {reason}")
