"""Stragglers: when a job is late enough to be given to a second worker, because the first one may hang."""

from collections import deque
from collections.abc import Callable, Collection
from statistics import median
from typing import Any

from hebbes.execution.jobs import Job

PATIENCE_SECONDS = 10.0
"""No job is a straggler earlier."""

PATIENCE_FACTOR = 4.0
"""A straggler takes this many times as long as the median of the jobs of its function."""

UNKNOWN_SECONDS = 60.0
"""After this time a job is a straggler if none of its function has been done yet."""

NUM_DURATIONS = 256
"""Latest jobs of a function that count."""


class Durations:
    """How long jobs take. Nothing but the choice of stragglers depends on it."""

    def __init__(self) -> None:
        self._seconds: dict[str, deque[float]] = {}

    def add(self, function: Callable[..., Any], seconds: float) -> None:
        """Adds a job of this function."""
        self._seconds.setdefault(_get_name(function), deque(maxlen=NUM_DURATIONS)).append(seconds)

    def estimate_patience(self, function: Callable[..., Any]) -> float:
        """Seconds after which a job of this function is a straggler."""
        known = self._seconds.get(_get_name(function))
        return max(PATIENCE_SECONDS, PATIENCE_FACTOR * median(known)) if known else UNKNOWN_SECONDS

    def find_late(self, jobs: Collection[Job], now: float) -> list[Job]:
        """The jobs that are stragglers, those that are late for longest first. One with a time limit is never late."""
        patience = {each: self.estimate_patience(each) for each in {job.function for job in jobs}}
        late = [job for job in jobs if job.limit is None and now - job.begun > patience[job.function]]
        return sorted(late, key=lambda job: job.begun)


def _get_name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", "")
