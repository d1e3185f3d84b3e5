"""Dispatch: hands jobs to workers, and tries a job again if its worker is lost.

Each job is a call that gives the same answer on any worker. A lost worker is replaced, and another worker does its job.
What else happens depends on why it was lost:

- It died during its job, or it was ended here because the job took longer than its time limit. A job that loses
  `MAX_TRIES` workers in this way is given up. The others go on, even if many are given up.
- It was killed from outside (SIGKILL by an operator, or by the kernel when memory is short), or it never reported that
  it runs. This counts against no job. But `MAX_DEATHS` such losses without an answer in between end the dispatch.
- It was ended here because its warm-up took longer than `START_SECONDS`. This counts against the job. Until some worker
  has finished a warm-up, it also counts as a loss of the second kind. So jobs that all hang in their warm-up end the
  dispatch after a few times `START_SECONDS`. If only some hang there, only these are given up.

Time is limited only for jobs with a TimeLimit. Only then can a result depend on the wall clock.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import say
from hebbes.execution.transport import Loss, Transport, Worker

MAX_TRIES = 2
"""Number of lost workers after which a job is given up."""

MAX_DEATHS = 5
"""Number of workers lost by no job's fault, without an answer in between, that ends the dispatch.

It is higher if there are more workers, because one cause may kill all of them at once."""

START_SECONDS = 60.0
"""Time for a new worker to start (imports), and again for its warm-up."""


@dataclass(frozen=True)
class TimeLimit:
    """How long a job may take on a worker that has warmed up. It never waits for a thread of the worker."""

    seconds: float
    reason: str
    """Why a job that takes longer is given up."""
    warm_up: Sequence[Any]
    """Arguments of a shorter call, which a new worker does first: it makes simulators and compiles."""


@dataclass(eq=False)
class _Job:
    ticket: int
    function: Callable[..., Any]
    arguments: Sequence[Any]
    home: int | None
    limit: TimeLimit | None
    give_up: Callable[[str], Any]
    deadline: float = inf
    is_warming_up: bool = False
    workers_lost: int = 0


@dataclass(eq=False)
class _Seat:
    """The place of a worker. If it is lost, another one gets its place."""

    number: int
    worker: Worker
    jobs: dict[int, _Job] = field(default_factory=dict)
    """What the worker does, or will do once it has started."""
    has_started: bool = False
    has_warmed_up: bool = False


def end_dispatch(reason: str) -> Any:
    """Gives a job up with all others."""
    raise EngineError(f"{MAX_TRIES} workers were lost in one job, the last one: {reason}")


class Dispatch:
    """Does jobs on the workers of a transport."""

    def __init__(self, transport: Transport[Any]):
        self._transport = transport
        self._seats: dict[int, _Seat] = {}
        self._waiting: list[_Job] = []
        self._answers: dict[int, Any] = {}
        self._tickets = count()
        self._deaths = 0  # workers lost by no job's fault since the last answer
        self._has_warmed_up = False  # whether any worker has ever finished a warm-up

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        home: int | None = None,
        urgent: bool = False,
        limit: TimeLimit | None = None,
        give_up: Callable[[str], Any] = end_dispatch,
    ) -> int:
        """Adds a job, `function(host, *arguments)`, and returns its ticket. An idle worker gets it at once.

        Args:
            function: can be imported by its name, because some transports send it as text.
            home: jobs of the same home prefer the same worker. In `collect`, one that is idle takes the last job of
                another home. Jobs without a home go to any worker that can begin them at once, in their order.
            urgent: goes before all jobs that wait for a worker.
            limit: how long the job may take; None: any time.
            give_up: called with a reason if the job has lost too many workers. It returns the answer, or raises.

        Any exception, here and in `collect`, drops all jobs and ends the workers.
        """
        ticket = next(self._tickets)
        self._waiting.insert(
            0 if urgent else len(self._waiting), _Job(ticket, function, arguments, home, limit, give_up)
        )
        with self._closing_on_failure():
            self._hand_out_jobs()
        return ticket

    def collect(self, tickets: Collection[int], timeout: float | None = None) -> tuple[int, Any] | None:
        """The ticket and the answer of the first job among these that is done; each answer is collected once.

        None if none is done in `timeout` seconds. Workers get their next jobs only here and in `submit`.
        Raises EngineError if a job has raised an exception or workers keep dying.
        """
        until, is_over = inf if timeout is None else time.monotonic() + timeout, False
        with self._closing_on_failure():
            self._hand_out_jobs(helping=True)
            while (done := self._take_done(tickets)) is None and not is_over:
                self._wait_for_workers(until)
                is_over = time.monotonic() >= until
                self._hand_out_jobs(helping=True)
        return done

    def collect_each(self, tickets: Collection[int]) -> Iterator[tuple[int, Any]]:
        """The tickets with their answers, in the order in which the jobs are done."""
        for _ in tickets:
            done = self.collect(tickets)
            assert done is not None, "it has waited"
            yield done

    def close(self) -> None:
        """Drops all jobs and ends the workers. New jobs start new ones."""
        self._seats.clear()
        self._waiting.clear()
        self._answers.clear()
        self._transport.close()

    @contextmanager
    def _closing_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()  # so that nothing goes on running
            raise

    def _take_done(self, tickets: Collection[int]) -> tuple[int, Any] | None:
        ticket = next((ticket for ticket in self._answers if ticket in tickets), None)
        return None if ticket is None else (ticket, self._answers.pop(ticket))

    def _start_workers(self) -> None:
        """Starts the workers that the jobs need, and those in place of lost ones."""
        if self._transport.num_workers < 1:
            raise EngineError("there is no worker to do the work")
        num_jobs = len(self._waiting) + sum(len(seat.jobs) for seat in self._seats.values())
        for number in range(min(self._transport.num_workers, num_jobs)):
            if number not in self._seats:
                self._seats[number] = _Seat(number, self._transport.start_worker())

    def _hand_out_jobs(self, *, helping: bool = False) -> None:
        """Gives the workers jobs of their homes and those without a home. Then idle ones may help others."""
        if not self._waiting:
            return
        self._start_workers()
        size, capacity = self._transport.num_workers, self._transport.capacity
        seats = sorted(self._seats.values(), key=lambda seat: len(seat.jobs))
        free = [seat for seat in seats if len(seat.jobs) < capacity]
        for seat in free:
            self._fill(seat, [job for job in self._waiting if job.home is None or job.home % size == seat.number])
        for seat in free if helping else ():
            self._fill(seat, self._waiting[::-1])

    def _fill(self, seat: _Seat, jobs: Sequence[_Job]) -> None:
        """Gives the worker the first of these jobs, as many as it may have."""
        for job in jobs:
            begins_at_once = job.limit is not None or job.home is None
            if len(seat.jobs) >= (self._transport.threads_per_worker if begins_at_once else self._transport.capacity):
                return
            self._waiting.remove(job)
            self._begin(seat, job)

    def _begin(self, seat: _Seat, job: _Job) -> None:
        """Sends the worker its job, or first a warm-up. A worker that is starting gets a deadline only."""
        seat.jobs[job.ticket], limit, seconds = job, job.limit, START_SECONDS
        job.is_warming_up = limit is not None and not seat.has_warmed_up
        if seat.has_started and limit is not None and job.is_warming_up:
            seat.worker.send(job.ticket, job.function, limit.warm_up)
        elif seat.has_started:
            seat.worker.send(job.ticket, job.function, job.arguments)
            seconds = inf if limit is None else limit.seconds
        job.deadline = inf if limit is None else time.monotonic() + seconds

    def _wait_for_workers(self, until: float) -> None:
        """Takes the next answers, until a time at most. Replaces workers that are lost or late."""
        busy = {seat.worker: seat for seat in self._seats.values() if seat.jobs}
        assert busy, "collect needs a job that was submitted and not yet collected"
        deadline = min(until, *(job.deadline for seat in busy.values() for job in seat.jobs.values()))
        timeout = None if deadline == inf else max(0.0, deadline - time.monotonic())
        answers = self._transport.wait(list(busy), timeout)
        for worker, ticket, answer in answers:
            self._take_answer(busy[worker], ticket, answer)
        if answers:
            return  # more may have come while the caller did something else, so nobody is late yet
        now = time.monotonic()
        for seat in list(self._seats.values()):
            late = next((job for job in seat.jobs.values() if job.deadline < now), None)
            if late is not None:
                self._lose_late_worker(seat, late)

    def _take_answer(self, seat: _Seat, ticket: int | None, answer: Any) -> None:
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Loss):
            if answer.is_blameless:
                self._lose_worker(seat, answer.reason, [])
            elif seat.has_started:
                self._lose_worker(seat, answer.reason, list(seat.jobs.values()))
            else:
                self._lose_worker(seat, f"{answer.reason} at its start", [])
        elif ticket is None:
            seat.has_started = True
            for job in seat.jobs.values():
                self._begin(seat, job)
        elif (job := seat.jobs[ticket]).is_warming_up:
            seat.has_warmed_up = self._has_warmed_up = True
            self._begin(seat, job)
        else:
            self._deaths = 0
            self._answers[ticket] = answer
            del seat.jobs[ticket]

    def _lose_late_worker(self, seat: _Seat, job: _Job) -> None:
        assert job.limit is not None, "others have no deadline"
        if not seat.has_started:
            self._lose_worker(seat, f"worker did not start in {START_SECONDS:g} s", [])
        elif job.is_warming_up:
            self._deaths += not self._has_warmed_up
            self._lose_worker(seat, f"worker did not warm up in {START_SECONDS:g} s", [job])
        else:
            self._lose_worker(seat, job.limit.reason, [job])

    def _lose_worker(self, seat: _Seat, reason: str, blamed: Sequence[_Job]) -> None:
        """Frees the place of a lost worker. Its jobs are tried again or given up. EngineError after too many losses."""
        del self._seats[seat.number]
        self._transport.end_worker(seat.worker)
        self._deaths += not blamed
        if self._deaths >= max(MAX_DEATHS, self._transport.num_workers + 1):
            raise EngineError(
                f"{self._deaths} workers were lost without an answer in between, the last one: {reason}; "
                "memory may be short, or the machine overloaded (fewer --threads need less memory)"
            )
        for job in seat.jobs.values():
            job.workers_lost += job in blamed
            if job.workers_lost < MAX_TRIES:
                say(f"a worker was replaced: {reason}")
                self._waiting.insert(0, job)
            else:
                self._answers[job.ticket] = job.give_up(reason)
