"""Jobs, and the places of the workers that do them, as the dispatch keeps them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from hebbes.contracts.engine import EngineError
from hebbes.execution.transport import Worker

MAX_TRIES = 2
"""Number of lost workers after which a job is given up."""


@dataclass(frozen=True)
class TimeLimit:
    """How long a job may take on a worker that has warmed up. It never waits for a thread of the worker."""

    seconds: float
    reason: str
    """Why a job that takes longer is given up."""
    warm_up: Sequence[Any]
    """Arguments of a shorter call, which a new worker does first: it makes simulators and compiles."""


@dataclass(eq=False)
class Job:
    """A call that some worker is to do."""

    ticket: int
    function: Callable[..., Any]
    arguments: Sequence[Any]
    home: int | None
    limit: TimeLimit | None
    give_up: Callable[[str], Any]
    deadline: float = inf
    is_warming_up: bool = False
    begun: float = 0.0
    """When it was last given to a worker."""
    workers_lost: int = 0

    def begin(self, warm_up_seconds: float) -> Sequence[Any]:
        """Starts the clock. Returns the arguments to send: first those of a warm-up, which may take so long."""
        self.begun = time.monotonic()
        if self.limit is None:
            return self.arguments
        self.deadline = self.begun + (warm_up_seconds if self.is_warming_up else self.limit.seconds)
        return self.limit.warm_up if self.is_warming_up else self.arguments


@dataclass(eq=False)
class Seat:
    """The place of a worker. If it is lost, another one gets its place."""

    number: int
    worker: Worker
    begun: float
    jobs: dict[int, Job] = field(default_factory=dict)
    """What the worker does. Another one may have done it already."""
    has_started: bool = False
    has_warmed_up: bool = False


def end_dispatch(reason: str) -> Any:
    """Gives a job up with all others."""
    raise EngineError(f"{MAX_TRIES} workers were lost in one job, the last one: {reason}")
