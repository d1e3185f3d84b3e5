"""Dispatch: hands jobs to workers, and tries a job again if its worker is lost.

Each job is a call that gives the same answer on any worker, however often it is done. A lost worker is replaced, and
another worker does its job. What else happens depends on why it was lost:

- It died during its job, or it was ended here because the job took longer than its time limit. A job that loses two
  workers in this way is given up. The others go on, even if many are given up.
- It was killed from outside (SIGKILL by an operator, or by the kernel when memory is short), or it never reported that
  it runs. This counts against no job. But `MAX_DEATHS` such losses without an answer in between end the dispatch.
- It is not known whether it died during its job or was killed. A job that loses five workers in this way is given up.
- It was ended here because its warm-up took longer than `START_SECONDS` and what the job's limit adds. This counts
  against the job. Until some worker has finished a warm-up, it also counts as a loss of the second kind. So jobs that
  all hang there end the dispatch.
- Its machine is gone. This counts for nothing. While there is no machine at all, the dispatch waits for one.

A worker may also hang (`hebbes.execution.stragglers`). When no job waits, a job that is late goes to an idle worker
too. The first answer counts. A worker that needs much longer than the one that was first is replaced, which counts for
nothing. So is one whose process has been stopped, and this counts as killed from outside. Others are left alone: they
may have a long job. A job with a TimeLimit ends by the clock instead. Only then can a result depend on it.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf
from typing import Any

from hebbes.contracts.engine import EngineError, StartError
from hebbes.contracts.errors import say
from hebbes.execution.jobs import MAX_TRIES, Call, Home, Job, Seat, Seats, TimeLimit, end_dispatch
from hebbes.execution.stragglers import LOOK_SECONDS, POLL_SECONDS, Stragglers, is_hanging
from hebbes.execution.transport import Loss, Transport
from hebbes.execution.waiting_jobs import WaitingJobs

START_SECONDS = 60.0
"""Time for a new worker to start (imports), and again for its warm-up."""

MAX_DEATHS = 5
"""Number of workers lost by no job's fault, without an answer in between, that ends the dispatch.

It is higher if there are more workers, because one cause may kill all of them at once."""


class Dispatch:
    """Does jobs on the workers of a transport."""

    def __init__(self, transport: Transport[Any]):
        self._transport = transport
        self._seats = Seats()
        self._undone: dict[int, Job] = {}
        self._waiting = WaitingJobs()
        self._answers: dict[int, Any] = {}
        self._tickets = count()
        self._stragglers = Stragglers()
        self._num_limited = 0  # undone jobs that have a time limit
        self._num_deaths = 0  # workers lost by no job's fault since the last answer
        self._has_warmed_up = False  # whether any worker has ever finished a warm-up
        self._looks_at = 0.0  # when it looks at workers without a time limit again
        self.num_sent_again = 0
        """Number of times that a job has been given to a further worker."""

    @property
    def num_started(self) -> int:
        """Number of workers that can do calls."""
        return self._seats.num_started

    @property
    def num_undone(self) -> int:
        """Number of jobs without an answer."""
        return len(self._undone)

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        home: Home | None = None,
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
            urgent: goes before all jobs that wait for a worker. Other idle workers stay so until `collect`, because
                the next job may be urgent, too.
            limit: how long the job may take; None: any time.
            give_up: called with a reason if the job has lost too many workers. It returns the answer, or raises.

        Any exception, here and in `collect`, drops all jobs and ends the workers.
        """
        ticket = next(self._tickets)
        job = self._undone[ticket] = Job(ticket, function, arguments, home, limit, give_up)
        self._num_limited += limit is not None
        owner = self._waiting.add(job, first=urgent)
        with self._close_on_failure():
            seats = self._seats.values() if owner is None else [owner]
            self._hand_out_jobs(sorted(seats, key=lambda seat: len(seat.calls))[: 1 if urgent else None])
        return ticket

    def collect(self, tickets: Collection[int], timeout: float | None = None) -> tuple[int, Any] | None:
        """The ticket and the answer of the first job among these that is done; each answer is collected once.

        None if none is done in `timeout` seconds. Workers get their next jobs only in `submit` and while this waits. So
        the caller can submit an urgent job for the worker that has just become idle.
        Raises EngineError if a job has raised an exception or workers keep dying.
        """
        until, is_over = inf if timeout is None else time.monotonic() + timeout, False
        assert any(ticket in self._undone or ticket in self._answers for ticket in tickets), (
            "collect needs a job that was submitted and not yet collected"
        )
        with self._close_on_failure():
            while (done := self._take_done(tickets)) is None:
                self._hand_out_jobs(self._seats.values(), helping=True)
                if is_over:
                    break
                self._wait_for_workers(until)
                is_over = time.monotonic() >= until
        return done

    def collect_each(self, tickets: Collection[int]) -> Iterator[tuple[int, Any]]:
        """The tickets with their answers, in the order in which the jobs are done.

        For callers that submit nothing in between: idle workers do not wait for them.
        """
        left = set(tickets)
        while left:
            done = self.collect(left)
            assert done is not None, "it has waited"
            left.remove(done[0])
            with self._close_on_failure():
                self._hand_out_jobs(self._seats.values(), helping=True)
            yield done

    def close(self) -> None:
        """Drops all jobs and ends the workers. New jobs start new ones."""
        self._seats.clear()
        self._undone.clear()
        self._num_limited = 0
        self._waiting = WaitingJobs()
        self._answers.clear()
        self._transport.close()

    @contextmanager
    def _close_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()  # so that nothing goes on running
            raise

    def _take_done(self, tickets: Collection[int]) -> tuple[int, Any] | None:
        ticket = next((ticket for ticket in self._answers if ticket in tickets), None)
        return None if ticket is None else (ticket, self._answers.pop(ticket))

    def _hand_out_jobs(self, seats: Collection[Seat], *, helping: bool = False) -> None:
        """Gives these workers jobs of their homes and those without a home. Then idle ones may help others."""
        if not self._undone:
            return
        calls = (call for seat in self._seats.values() for call in seat.calls.values())
        stragglers = self._stragglers.list_jobs(calls) if helping and not self._waiting else []
        self._seats.start_workers(self._transport, len(self._waiting) + len(stragglers))
        self._seats.say_if_stranded(time.monotonic() - START_SECONDS)
        if not self._waiting and not stragglers:
            return
        free = [seat for seat in seats if seat.has_started and len(seat.calls) < self._transport.capacity]
        for seat in sorted(free, key=lambda seat: len(seat.calls)):
            self._fill(seat, partial(self._waiting.find_first, seat))
        for seat in free if helping else ():
            self._fill(seat, self._waiting.find_last)
        for seat, job in zip([seat for seat in free if not seat.calls], stragglers, strict=False):
            self.num_sent_again += 1
            self._begin(seat, job)

    def _fill(self, seat: Seat, find_job: Callable[[], Job | None]) -> None:
        """Gives the worker the jobs that are found, as many as it may have."""
        while len(seat.calls) < self._transport.capacity and (job := find_job()) is not None:
            begins_at_once = job.limit is not None or job.home is None
            if begins_at_once and len(seat.calls) >= self._transport.threads_per_worker:
                return
            self._waiting.take(job, seat)
            self._begin(seat, job)

    def _begin(self, seat: Seat, job: Job) -> None:
        """Sends the worker its job. If this has a time limit, a worker may have to warm up first."""
        now, needs_warm_up = time.monotonic(), seat.needs_warm_up(job)
        seconds = LOOK_SECONDS
        if job.limit is not None:
            seconds = START_SECONDS + job.limit.extra_seconds if needs_warm_up else job.limit.seconds
        call = seat.calls[job.ticket] = Call(job, now, now + seconds, needs_warm_up)
        seat.worker.send(job.ticket, job.function, call.arguments)

    def _wait_for_workers(self, until: float) -> None:
        """Takes the next answers, until a time at most. Looks at workers that are late."""
        asked = {seat.worker: seat for seat in self._seats.values() if seat.calls or not seat.has_started}
        now = time.monotonic()
        watched = asked.values() if self._num_limited or now >= self._looks_at else ()
        self._looks_at = now + POLL_SECONDS if watched else self._looks_at
        until = min(until, now + POLL_SECONDS, *map(self._find_deadline, watched))
        answers = self._transport.wait(list(asked), max(0.0, until - now))
        for worker, ticket, answer in answers:
            self._take_answer(asked[worker], ticket, answer)
        if answers:
            return  # more may have come meanwhile, so nobody is late yet
        for seat in watched:
            if self._find_deadline(seat) < time.monotonic():
                self._look_at_late_worker(seat)

    def _find_deadline(self, seat: Seat) -> float:
        """When the worker is late. One that starts is late only if a job with a time limit waits for it."""
        if seat.has_started:
            return min((call.deadline for call in seat.calls.values()), default=inf)
        is_awaited = self._transport.starts_at_once and self._waiting.has_limits()
        return seat.begun + START_SECONDS if is_awaited else inf

    def _take_answer(self, seat: Seat, ticket: int | None, answer: Any) -> None:
        call = None if ticket is None else seat.calls[ticket]
        if call is not None and call.job.seconds is not None:
            del seat.calls[call.job.ticket]  # another worker was first
        elif isinstance(answer, BaseException):
            raise answer
        elif isinstance(answer, Loss):
            reason = answer.reason if seat.has_started else f"{answer.reason} at its start"
            self._lose_worker(seat, replace(answer, reason=reason), list(seat.calls.values()))
        elif call is None:
            seat.has_started = True
            self._waiting.share_out(self.num_started)
        elif call.is_warming_up:
            seat.end_warm_up(call)
            self._has_warmed_up = True
            self._begin(seat, call.job)
        else:
            del seat.calls[call.job.ticket]
            self._num_deaths = 0
            call.job.seconds = time.monotonic() - call.begun
            self._stragglers.add_duration(call.job.function, call.job.seconds)
            self._finish(call.job, answer)

    def _look_at_late_worker(self, seat: Seat) -> None:
        """Replaces a worker that is late. One without a time limit is left alone, unless it is known to hang."""
        if not seat.has_started:
            return self._lose_worker(seat, Loss(f"worker did not start in {START_SECONDS:g} s", "kill"), [])
        call, now = min(seat.calls.values(), key=lambda call: call.deadline), time.monotonic()
        job, waited = call.job, now - call.begun
        if is_hanging(call, now):
            reason = f"worker has not answered for {waited:.0f} s, and another one took {job.seconds:.0f} s"
            return self._lose_worker(seat, Loss(reason, "hang"), [])
        if job.limit is None:
            call.deadline = now + waited
            return seat.worker.end_if_stopped()
        if call.is_warming_up and not self._has_warmed_up:
            self._num_deaths += 1
        most = call.deadline - call.begun
        reason = f"worker did not warm up in {most:.0f} s" if call.is_warming_up else job.limit.reason
        return self._lose_worker(seat, Loss(reason, "call"), [call])

    def _lose_worker(self, seat: Seat, loss: Loss, blamed: Sequence[Call]) -> None:
        """Frees the place of a lost worker. Its jobs are tried again or given up, unless others have them or had them.

        EngineError after too many losses.
        """
        del self._seats[seat.number]
        self._waiting.free(seat)
        self._transport.end_worker(seat.worker)
        if loss.cause != "machine":  # which the transport has said, once for all of its workers
            say(f"a worker was replaced: {loss.reason}")
        if loss.cause == "kill" or (loss.cause in MAX_TRIES and not blamed):
            self._num_deaths += 1
        for ticket, call in seat.calls.items():
            job = call.job
            job.losses[loss.cause] += call in blamed
            if job.seconds is not None or any(ticket in other.calls for other in self._seats.values()):
                continue
            if job.losses[loss.cause] < MAX_TRIES.get(loss.cause, inf):
                self.num_sent_again += 1
                self._waiting.add(job, first=True)
            else:
                self._finish(job, job.give_up(loss.reason))
        if self._num_deaths >= max(MAX_DEATHS, self._transport.num_workers + 1):
            kind = StartError if loss.ended_itself and not seat.has_started else EngineError
            raise kind(
                f"{self._num_deaths} workers were lost without an answer in between, the last one: {loss.reason}; "
                "memory may be short, or the machine overloaded (fewer --threads need less memory)"
            )

    def _finish(self, job: Job, answer: Any) -> None:
        del self._undone[job.ticket]
        self._num_limited -= job.limit is not None
        self._answers[job.ticket] = answer
