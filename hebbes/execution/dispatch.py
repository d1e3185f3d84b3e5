"""Dispatch: hands jobs to workers, and tries a job again if its worker is lost.

Each job is a call that gives the same answer on any worker, however often it is done. A lost worker is replaced, and
another worker does its job. What else happens depends on why it was lost:

- It died during its job, or it was ended here because the job took longer than its time limit. A job that loses
  `MAX_TRIES` workers in this way is given up. The others go on, even if many are given up.
- It was killed from outside (SIGKILL by an operator, or by the kernel when memory is short), or it never reported that
  it runs. This counts against no job. But `MAX_DEATHS` such losses without an answer in between end the dispatch.
- It was ended here because its warm-up took longer than `START_SECONDS`. This counts against the job. Until some worker
  has finished a warm-up, it also counts as a loss of the second kind. So jobs that all hang in their warm-up end the
  dispatch after a few times `START_SECONDS`. If only some hang there, only these are given up.
- Its machine is gone. This counts for nothing. While there is no machine at all, the dispatch waits for one.

A worker may also hang. When no job waits, a job that is late (`hebbes.execution.stragglers`) goes to an idle worker
too. The first answer counts.

A job with a TimeLimit ends by the clock instead. Only then can a result depend on the wall clock.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from math import inf
from typing import Any

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import say
from hebbes.execution.jobs import MAX_TRIES, Homes, Job, Seat, TimeLimit, end_dispatch
from hebbes.execution.stragglers import Durations
from hebbes.execution.transport import Loss, Transport

MAX_DEATHS = 5
"""Number of workers lost by no job's fault, without an answer in between, that ends the dispatch.

It is higher if there are more workers, because one cause may kill all of them at once."""

START_SECONDS = 60.0
"""Time for a new worker to start (imports), and again for its warm-up."""

POLL_SECONDS = 1.0
"""How often it looks for stragglers and for new machines while no worker answers."""


class Dispatch:
    """Does jobs on the workers of a transport."""

    def __init__(self, transport: Transport[Any]):
        self._transport = transport
        self._seats: dict[int, Seat] = {}
        self._homes = Homes()
        self._undone: dict[int, Job] = {}
        self._waiting: list[Job] = []
        self._answers: dict[int, Any] = {}
        self._tickets = count()
        self._durations = Durations()
        self._deaths = 0  # workers lost by no job's fault since the last answer
        self._has_warmed_up = False  # whether any worker has ever finished a warm-up
        self._looks_at = 0.0  # when it looks for stragglers again
        self._is_stranded = False  # whether there was no machine when it last looked
        self.num_sent_again = 0
        """Number of times that a job has been given to a further worker."""

    @property
    def num_started(self) -> int:
        """Number of workers that can do calls."""
        return sum(seat.has_started for seat in self._seats.values())

    @property
    def num_undone(self) -> int:
        """Number of jobs without an answer."""
        return len(self._undone)

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
            home: jobs of the same home prefer the same worker while it lives. In `collect`, one that is idle takes the
                last job of another home. Jobs without a home go to any worker that can begin them at once, in their
                order.
            urgent: goes before all jobs that wait for a worker.
            limit: how long the job may take; None: any time.
            give_up: called with a reason if the job has lost too many workers. It returns the answer, or raises.

        Any exception, here and in `collect`, drops all jobs and ends the workers.
        """
        ticket = next(self._tickets)
        job = self._undone[ticket] = Job(ticket, function, arguments, home, limit, give_up)
        self._waiting.insert(0 if urgent else len(self._waiting), job)
        with self._closing_on_failure():
            self._hand_out_jobs()
        return ticket

    def collect(self, tickets: Collection[int], timeout: float | None = None) -> tuple[int, Any] | None:
        """The ticket and the answer of the first job among these that is done; each answer is collected once.

        None if none is done in `timeout` seconds. Workers get their next jobs only here and in `submit`.
        Raises EngineError if a job has raised an exception or workers keep dying.
        """
        until, is_over = inf if timeout is None else time.monotonic() + timeout, False
        assert any(ticket in self._undone or ticket in self._answers for ticket in tickets), (
            "collect needs a job that was submitted and not yet collected"
        )
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
        self._homes = Homes()
        self._undone.clear()
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

    def _start_workers(self, num_stragglers: int) -> None:
        """Starts the workers that jobs and stragglers need, and those in place of lost ones."""
        num_workers = self._transport.num_workers
        if self._is_stranded != (num_workers < 1):
            self._is_stranded = not self._is_stranded
            say("no machine is left to do the work; waiting for one" if self._is_stranded else "the work goes on")
        num_jobs = len(self._waiting) + sum(len(seat.jobs) for seat in self._seats.values())
        for number in count():
            if len(self._seats) >= min(num_workers, num_jobs + num_stragglers):
                return
            if number not in self._seats:
                self._seats[number] = Seat(number, self._transport.start_worker(), time.monotonic())

    def _hand_out_jobs(self, *, helping: bool = False) -> None:
        """Gives the workers jobs of their homes and those without a home. Then idle ones may help others."""
        if not self._undone:
            return
        stragglers = self._list_stragglers() if helping and not self._waiting else []
        self._start_workers(len(stragglers))
        seats = sorted(self._seats.values(), key=lambda seat: len(seat.jobs))
        free = [seat for seat in seats if seat.has_started and len(seat.jobs) < self._transport.capacity]
        for seat in free:
            self._fill(seat, [job for job in self._waiting if self._homes.find_owner(job) in (None, seat)])
        for seat in free if helping else ():
            self._fill(seat, self._waiting[::-1])
        for seat, job in zip([seat for seat in free if not seat.jobs], stragglers, strict=False):
            self.num_sent_again += 1
            self._begin(seat, job)

    def _list_stragglers(self) -> list[Job]:
        """The late jobs, those that are late for longest first. It looks once in `POLL_SECONDS`."""
        now = time.monotonic()
        if now < self._looks_at:
            return []
        self._looks_at = now + POLL_SECONDS
        out = {job for seat in self._seats.values() for job in seat.jobs.values() if job.ticket in self._undone}
        patience = {job.function: self._durations.estimate_patience(job.function) for job in out}
        late = [job for job in out if job.limit is None and now - job.begun > patience[job.function]]
        return sorted(late, key=lambda job: job.begun)

    def _fill(self, seat: Seat, jobs: Sequence[Job]) -> None:
        """Gives the worker the first of these jobs, as many as it may have."""
        for job in jobs:
            begins_at_once = job.limit is not None or job.home is None
            if len(seat.jobs) >= (self._transport.threads_per_worker if begins_at_once else self._transport.capacity):
                return
            self._waiting.remove(job)
            self._homes.add(job, seat)
            job.is_warming_up = job.limit is not None and not seat.has_warmed_up
            self._begin(seat, job)

    def _begin(self, seat: Seat, job: Job) -> None:
        """Sends the worker its job, or first a warm-up."""
        seat.jobs[job.ticket], limit, job.begun = job, job.limit, time.monotonic()
        arguments, seconds = job.arguments, inf if limit is None else limit.seconds
        if limit is not None and job.is_warming_up:
            arguments, seconds = limit.warm_up, START_SECONDS
        job.deadline = job.begun + seconds
        seat.worker.send(job.ticket, job.function, arguments)

    def _wait_for_workers(self, until: float) -> None:
        """Takes the next answers, until a time at most. Replaces workers that are lost or late."""
        asked = {seat.worker: seat for seat in self._seats.values() if seat.jobs or not seat.has_started}
        now = time.monotonic()
        until = min(until, now + POLL_SECONDS, *(self._find_deadline(seat) for seat in asked.values()))
        answers = self._transport.wait(list(asked), max(0.0, until - now))
        for worker, ticket, answer in answers:
            self._take_answer(asked[worker], ticket, answer)
        if answers:
            return  # more may have come while the caller did something else, so nobody is late yet
        for seat in asked.values():
            if self._find_deadline(seat) < time.monotonic():
                self._lose_late_worker(seat)

    def _find_deadline(self, seat: Seat) -> float:
        """When the worker is late. One that starts is late only if a job with a time limit waits for it."""
        if seat.has_started:
            return min((job.deadline for job in seat.jobs.values()), default=inf)
        is_awaited = self._transport.starts_at_once and any(job.limit is not None for job in self._waiting)
        return seat.begun + START_SECONDS if is_awaited else inf

    def _take_answer(self, seat: Seat, ticket: int | None, answer: Any) -> None:
        job = None if ticket is None else seat.jobs[ticket]
        if job is not None and job.ticket not in self._undone:
            del seat.jobs[job.ticket]  # another worker was first
        elif isinstance(answer, BaseException):
            raise answer
        elif isinstance(answer, Loss):
            self._take_loss(seat, answer)
        elif job is None:
            seat.has_started = True
            self._homes.share_out(self.num_started)
        elif job.is_warming_up:
            seat.has_warmed_up = self._has_warmed_up = True
            job.is_warming_up = False
            self._begin(seat, job)
        else:
            self._deaths = 0
            self._durations.add(job.function, time.monotonic() - job.begun)
            del seat.jobs[job.ticket]
            self._finish(job, answer)

    def _take_loss(self, seat: Seat, loss: Loss) -> None:
        if loss.cause == "machine":
            return self._free_seat(seat, "", [])
        blamed = list(seat.jobs.values()) if loss.cause == "call" else []
        return self._lose_worker(seat, loss.reason if seat.has_started else f"{loss.reason} at its start", blamed)

    def _lose_late_worker(self, seat: Seat) -> None:
        if not seat.has_started:
            return self._lose_worker(seat, f"worker did not start in {START_SECONDS:g} s", [])
        job = min(seat.jobs.values(), key=lambda job: job.deadline)
        assert job.limit is not None, "others have no deadline"
        if job.is_warming_up:
            self._deaths += not self._has_warmed_up
            return self._lose_worker(seat, f"worker did not warm up in {START_SECONDS:g} s", [job])
        return self._lose_worker(seat, job.limit.reason, [job])

    def _lose_worker(self, seat: Seat, reason: str, blamed: Sequence[Job]) -> None:
        """Frees the place of a lost worker, as `_free_seat`. EngineError after too many losses."""
        self._deaths += not blamed
        if self._deaths >= max(MAX_DEATHS, self._transport.num_workers + 1):
            raise EngineError(
                f"{self._deaths} workers were lost without an answer in between, the last one: {reason}; "
                "memory may be short, or the machine overloaded (fewer --threads need less memory)"
            )
        self._free_seat(seat, reason, blamed)

    def _free_seat(self, seat: Seat, reason: str, blamed: Sequence[Job]) -> None:
        """Frees the place of a lost worker. Its jobs are tried again or given up, unless others do them already.

        A line says so, unless the reason is empty, because the transport has said that a machine is gone.
        """
        del self._seats[seat.number]
        self._homes.free(seat)
        self._transport.end_worker(seat.worker)
        for job in seat.jobs.values():
            job.workers_lost += job in blamed
            if job.ticket not in self._undone or any(job.ticket in other.jobs for other in self._seats.values()):
                continue
            if job.workers_lost < MAX_TRIES:
                if reason:
                    say(f"a worker was replaced: {reason}")
                self.num_sent_again += 1
                self._waiting.insert(0, job)
            else:
                self._finish(job, job.give_up(reason))

    def _finish(self, job: Job, answer: Any) -> None:
        del self._undone[job.ticket]
        self._answers[job.ticket] = answer
