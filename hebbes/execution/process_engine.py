"""The worker engine: chunks run in spawned processes, for simulators that hold Python's interpreter lock.

A worker that is lost is replaced and its chunk given to another, with the same bits. Who is to blame depends on how:

- It died in its chunk, or was killed here because the chunk took longer than `episode_timeout`. A chunk that has cost
  `MAX_TRIES` workers so is to blame itself: its members have failed, and the evaluation goes on, however many they are.
- It was killed from outside (SIGKILL: an operator, or the kernel that lacks memory), or never came as far as to say
  that it runs. Nobody's fault; but `MAX_DEATHS` such losses with no answer in between end the evaluation.
- It was killed here because its rehearsal, a chunk's first env step, took longer than `START_SECONDS`. That counts
  against the chunk; and, until some worker has done a rehearsal, towards the end of the evaluation too. So a simulator
  that is stuck in its constructor or first env step ends the run after a few times `START_SECONDS`, and one that is
  stuck there for some members only fails theirs.

Time is limited only where there is an `episode_timeout`; only there can a result depend on the wall clock.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from signal import SIGKILL
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from hebbes.contracts.engine import Context, EngineError, Rollouts
from hebbes.contracts.errors import say
from hebbes.contracts.population import Population
from hebbes.execution.chunks import Task, added, cut, failed, joined
from hebbes.execution.worker_process import STOP_SECONDS, Call, Stage, Worker, stop

MAX_TRIES = 2
"""Workers that a chunk may cost."""

MAX_DEATHS = 5
"""Workers that may be lost through no chunk's fault, with no answer in between, before it is clear that none can work;
more where more of them work, since one cause may kill all at once."""

START_SECONDS = 60.0
"""What a new worker may take to start (imports), and then to rehearse: making simulators, compilation, an env step."""


@dataclass(frozen=True)
class _Limit:
    """How long the answers to calls may take, once a worker has done a rehearsal: a smaller call of the kind."""

    seconds: float = inf
    rehearsals: Sequence[Call] = ()


class _Crew:
    """Workers, the dead ones of which are replaced."""

    def __init__(self, task: Task, size: int):
        self._task = task
        self._size = size
        self.deaths = 0
        """Workers lost through no chunk's fault since the last answer."""
        self.has_rehearsed = False
        """Whether any worker ever has."""
        self.workers: list[Worker] = []

    def gather(self, num_calls: int) -> None:
        """Starts the workers that so many calls need, others in the place of those that have died idle."""
        for worker in [worker for worker in self.workers if not worker.process.is_alive()]:
            worker.end(0.0)
            self.workers.remove(worker)
        while len(self.workers) < min(self._size, num_calls):
            self.workers.append(Worker(self._task))

    def replace(self, number: int, reason: str) -> None:
        """Puts another worker in the place of one that was lost; EngineError where that has become pointless."""
        if self.deaths >= max(MAX_DEATHS, self._size + 1):
            raise EngineError(
                f"{self.deaths} workers were lost with no answer in between, the last one: {reason}; "
                "memory may be short, or the machine overloaded (fewer --threads need less)"
            )
        self.workers[number] = Worker(self._task)


class WorkerEngine:
    """Evaluates in `workers` processes, each with one thread.

    A chunk may take `episode_timeout` seconds of wall time for each of its episodes; None is no limit.
    """

    def __init__(self, task: Task, *, chunk_size: int, workers: int, episode_timeout: float | None = None):
        self._task = task
        self._crew = _Crew(task, workers)
        self._chunk_size = chunk_size
        self._episode_timeout = episode_timeout
        # Before multiprocessing ends its processes, for which it would wait for ever: these do not heed SIGTERM.
        Finalize(self, stop, (self._crew.workers,), exitpriority=0)

    def evaluate(self, population: Population, context: Context, members: range | None = None) -> Rollouts:
        """Lets the members named, or all, act in their episodes; EngineError where that cannot be done."""
        members = range(len(population)) if members is None else members
        chunks = cut(members.stop, self._chunk_size, members.start)
        calls = [("evaluate", (population, ids, context, 1)) for ids in chunks]
        limit, num_cases = _Limit(), self._task.num_cases(context)
        if self._episode_timeout is not None:
            shortest = replace(context, episodes=context.episodes[:1], max_episode_steps=1)
            rehearsals = [("evaluate", (population, ids, shortest, 1)) for ids in chunks]
            limit = _Limit(self._episode_timeout * max(map(len, chunks)) * num_cases, rehearsals)

        def give_up(number: int, reason: str) -> Rollouts:
            ids = chunks[number]
            say(
                f"members {ids.start} to {ids.stop - 1} failed in {context.purpose.name.lower()} at generation "
                f"{context.generation}: {reason}"
            )
            return failed(ids, num_cases, reason)

        return joined(self._map(calls, give_up, limit))

    def combine(
        self, population: Population, utilities: Float[np.ndarray, " members"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum over members of utility times noise to the power, added in chunk order."""

        def give_up(number: int, reason: str) -> Float64[np.ndarray, " params"]:
            raise EngineError(f"the sum of noise over members {chunks[number]} failed: {reason}")

        chunks = cut(len(population), self._chunk_size)
        calls = [("combine", (population, ids, utilities, power)) for ids in chunks]
        return added(self._map(calls, give_up, _Limit()))

    def close(self) -> None:
        """Ends the workers."""
        stop(self._crew.workers)

    def _map(self, calls: Sequence[Call], give_up: Callable[[int, str], Any], limit: _Limit) -> list[Any]:
        """The answers to all calls, in their order, whoever gives them; `give_up` answers what costs too much."""
        self._crew.gather(len(calls))
        try:
            return _Dispatch(self._crew, calls, give_up, limit).run()
        except BaseException:
            self.close()  # so that no late answer is taken for another call's
            raise


class _Dispatch:
    """Gives calls to a crew until all are answered; see `WorkerEngine._map`."""

    def __init__(self, crew: _Crew, calls: Sequence[Call], give_up: Callable[[int, str], Any], limit: _Limit):
        self._crew, self._calls, self._give_up, self._limit = crew, calls, give_up, limit
        self._answers: dict[int, Any] = {}
        self._waiting = deque(range(len(calls)))
        self._busy: dict[int, int] = {}  # number of a worker -> number of its call
        self._deadlines: dict[int, float] = {}  # number of a worker -> when its time is up
        self._cost: Counter[int] = Counter()  # number of a call -> workers that it has cost

    def run(self) -> list[Any]:
        """The answers, in the order of the calls."""
        while len(self._answers) < len(self._calls):
            self._hand_out()
            for number in self._ready():
                self._take_answer(number)
            now = time.monotonic()
            for number in [number for number in self._busy if self._deadlines[number] < now]:
                self._lose(number, timed_out=True)
        return [self._answers[call] for call in range(len(self._calls))]

    def _hand_out(self) -> None:
        for number in range(len(self._crew.workers)):
            if self._waiting and number not in self._busy:
                self._busy[number] = self._waiting.popleft()
                self._send(number)

    def _send(self, number: int) -> None:
        """Has a worker start, rehearse and do its call, whichever is next."""
        worker, call = self._crew.workers[number], self._busy[number]
        seconds = START_SECONDS
        if self._rehearses(worker):
            worker.send(self._limit.rehearsals[call])
        elif worker.stage is not Stage.STARTING:
            worker.send(self._calls[call])
            seconds = self._limit.seconds
        self._deadlines[number] = inf if self._limit.seconds == inf else time.monotonic() + seconds

    def _rehearses(self, worker: Worker) -> bool:
        return bool(self._limit.rehearsals) and worker.stage is Stage.RUNNING

    def _ready(self) -> list[int]:
        """Workers that have answered or died; none if the time of one is up before that."""
        patience = min(self._deadlines[number] for number in self._busy) - time.monotonic()
        connections = [self._crew.workers[number].connection for number in self._busy]
        ready = wait(connections, None if patience == inf else max(0.0, patience))
        return [number for number in self._busy if self._crew.workers[number].connection in ready]

    def _take_answer(self, number: int) -> None:
        worker = self._crew.workers[number]
        answer = worker.receive()
        if answer is None:
            self._lose(number, timed_out=False)
            return
        succeeded, value = answer
        if not succeeded:
            raise EngineError(value)
        if worker.stage is Stage.STARTING:
            worker.stage = Stage.RUNNING
            self._send(number)
        elif self._rehearses(worker):
            worker.stage = Stage.REHEARSED
            self._crew.has_rehearsed = True
            self._send(number)
        else:
            self._crew.deaths = 0
            self._answers[self._busy.pop(number)] = value

    def _lose(self, number: int, *, timed_out: bool) -> None:
        """Replaces a dead or late worker, and has its call tried again or given up."""
        worker = self._crew.workers[number]
        exit_code = worker.end(0.0 if timed_out else STOP_SECONDS)
        killed_from_outside = not timed_out and exit_code == -SIGKILL
        reason = self._too_late(worker) if timed_out else _died(worker, exit_code)
        blameless = killed_from_outside or worker.stage is Stage.STARTING
        cannot_begin = timed_out and self._rehearses(worker) and not self._crew.has_rehearsed
        self._crew.deaths += blameless or cannot_begin
        self._crew.replace(number, reason)
        call = self._busy.pop(number)
        self._cost[call] += not blameless
        if self._cost[call] < MAX_TRIES:
            say(f"a worker was replaced: {reason}")
            self._waiting.appendleft(call)
        else:
            self._answers[call] = self._give_up(call, reason)

    def _too_late(self, worker: Worker) -> str:
        if worker.stage is Stage.STARTING:
            return f"worker did not start in {START_SECONDS:g} s"
        return f"simulator did not begin in {START_SECONDS:g} s" if self._rehearses(worker) else "episode_timeout"


def _died(worker: Worker, exit_code: int | None) -> str:
    if exit_code == -SIGKILL:
        return "worker was killed from outside"
    return f"worker died{' at its start' if worker.stage is Stage.STARTING else ''} (exit code {exit_code})"
