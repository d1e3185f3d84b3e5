"""Jobs that wait for a worker, and which worker the jobs of each home prefer.

To find the first job takes the same time however many wait, because a generation may have ten thousand.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush
from itertools import count
from math import ceil

from hebbes.execution.jobs import Home, Job, Seat


class WaitingJobs:
    """The jobs in their order. Those of a home prefer the first worker that had one of them, as long as it lives."""

    def __init__(self) -> None:
        self._owners: dict[Home, Seat] = {}
        self._places: dict[Job, int] = {}
        """Waiting job -> its place in the order."""
        self._queues: dict[Seat | None, list[tuple[int, Job]]] = {}
        """Preferred worker -> heap of (place, job). Entries out of date are moved or dropped when they come first."""
        self._counter = count(1)

    def __len__(self) -> int:
        """Number of jobs that wait."""
        return len(self._places)

    def add(self, job: Job, *, first: bool = False) -> Seat | None:
        """Adds a job as the last one, or as the first. Returns the worker that it prefers, if there is one."""
        self._places[job] = next(self._counter) * (-1 if first else 1)
        self._enqueue(job)
        return self._find_owner(job)

    def take(self, job: Job, seat: Seat) -> None:
        """Takes a job for this worker, which owns its home from now on if nobody does."""
        del self._places[job]
        if job.home is not None:
            self._owners.setdefault(job.home, seat)
        if not self._places:
            self._queues.clear()  # entries out of date keep jobs, with their arguments

    def find_first(self, seat: Seat) -> Job | None:
        """The first job that prefers this worker, or none."""
        heads = [head for head in (self._find_head(None), self._find_head(seat)) if head is not None]
        return min(heads)[1] if heads else None

    def find_last(self) -> Job | None:
        """The last of all jobs."""
        return max(self._places, key=self._places.__getitem__, default=None)

    def has_limits(self) -> bool:
        """Whether a job with a time limit waits."""
        return any(job.limit is not None for job in self._places)

    def share_out(self, num_workers: int) -> None:
        """Frees the homes of each worker above its share of each kind, so that one that has started gets some."""
        num_homes = Counter(kind for kind, _ in self._owners)
        homes: dict[tuple[Seat, Hashable], list[Home]] = {}
        for home, owner in self._owners.items():
            homes.setdefault((owner, home[0]), []).append(home)
        for (seat, kind), own in homes.items():
            self._free_homes(seat, own[ceil(num_homes[kind] / num_workers) :])

    def free(self, seat: Seat) -> None:
        """Frees the homes of a lost worker."""
        self._free_homes(seat, [home for home, owner in self._owners.items() if owner is seat])

    def _free_homes(self, seat: Seat, homes: Sequence[Home]) -> None:
        for home in homes:
            del self._owners[home]
        for _, job in self._queues.pop(seat, []) if homes else ():
            if job in self._places:
                self._enqueue(job)

    def _find_owner(self, job: Job) -> Seat | None:
        return None if job.home is None else self._owners.get(job.home)

    def _enqueue(self, job: Job) -> None:
        heappush(self._queues.setdefault(self._find_owner(job), []), (self._places[job], job))

    def _find_head(self, seat: Seat | None) -> tuple[int, Job] | None:
        """The first entry of a queue that is not out of date."""
        queue = self._queues.get(seat, [])
        while queue:
            place, job = queue[0]
            waits = self._places.get(job) == place
            if waits and self._find_owner(job) is seat:
                return queue[0]
            heappop(queue)
            if waits:
                self._enqueue(job)
        return None
