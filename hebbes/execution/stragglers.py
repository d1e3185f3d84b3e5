"""Stragglers: when a job is late enough to be given to a second worker, and when the first one is taken to hang."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from hebbes.execution.jobs import Call, Job

PATIENCE_SECONDS = 10.0
"""No job is a straggler earlier."""

PATIENCE_FACTOR = 4.0
"""A straggler takes this many times as long as any of the latest jobs of its function. They may be of several kinds."""

UNKNOWN_SECONDS = 60.0
"""After this time a job is a straggler if none of its function has been done yet."""

NUM_DURATIONS = 256
"""Latest jobs of a function that count."""

LOOK_SECONDS = 60.0
"""A worker that has had a job for so long is looked at, then after twice this time, four times and so on."""

POLL_SECONDS = 1.0
"""How often the dispatch looks for stragglers, at workers without a time limit, and for new machines."""

HANG_FACTOR = 10.0
"""A worker hangs if it takes more than this many times as long as another one that has done its job."""


class Stragglers:
    """Which jobs are late. It knows how long jobs take. Nothing but this choice depends on that."""

    def __init__(self) -> None:
        self._seconds: dict[Callable[..., Any], deque[float]] = {}
        self._looks_at = 0.0

    def add_duration(self, function: Callable[..., Any], seconds: float) -> None:
        """A job of this function has taken so long."""
        self._seconds.setdefault(function, deque(maxlen=NUM_DURATIONS)).append(seconds)

    def estimate_patience(self, function: Callable[..., Any]) -> float:
        """Seconds after which a job of this function is a straggler."""
        known = self._seconds.get(function)
        return max(PATIENCE_SECONDS, PATIENCE_FACTOR * max(known)) if known else UNKNOWN_SECONDS

    def list_jobs(self, calls: Iterable[Call]) -> list[Job]:
        """The jobs that are late on every worker that has them, those that are late for longest first.

        A job with a time limit is none. It looks once in `POLL_SECONDS`; in between there are none.
        """
        now = time.monotonic()
        if now < self._looks_at:
            return []
        self._looks_at = now + POLL_SECONDS
        in_order = sorted(calls, key=lambda call: call.begun)
        latest = {call.job: call.begun for call in in_order if call.job.seconds is None and call.job.limit is None}
        patience = {job.function: self.estimate_patience(job.function) for job in latest}
        late = [job for job, begun in latest.items() if now - begun > patience[job.function]]
        return sorted(late, key=lambda job: latest[job])


def is_hanging(call: Call, now: float) -> bool:
    """Whether the worker of this call hangs, because another one has done the job in much less time."""
    return call.job.seconds is not None and now - call.begun > HANG_FACTOR * call.job.seconds
