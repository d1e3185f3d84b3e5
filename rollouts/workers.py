"""The worker engine: chunks run in spawned processes, for simulators that hold Python's interpreter lock.

A worker that dies is replaced and its chunk given to another, with the same bits. A chunk that has cost `MAX_TRIES`
workers is to blame itself: its members have failed, and the evaluation goes on. So it is with one that takes too long,
whose worker is killed; only there does a result depend on the wall clock.
"""

import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from contracts.engine import Context, EngineError, Rollouts
from contracts.population import Population
from rollouts.chunks import Task, added, cut, failed, joined
from rollouts.worker_process import STOP_SECONDS, Answer, Call, Worker, stop

MAX_TRIES = 2
"""Workers that a chunk may cost."""

MAX_DEATHS = 5
"""Workers that may be lost one after another, with no answer in between, before it is clear that none can work; more
where more of them work, since one cause may kill all at once."""

START_SECONDS = 60.0
"""What a new worker's rehearsal may take: imports, compilation, making simulators, the first env step."""


@dataclass(frozen=True)
class _Limit:
    """How long the answers to calls may take, once a worker has answered a rehearsal: a smaller call of the kind."""

    seconds: float
    rehearsals: Sequence[Call]


class _Crew:
    """Workers, the dead ones of which are replaced."""

    def __init__(self, task: Task, size: int):
        self._task = task
        self._size = size
        self._deaths = 0
        self.workers: list[Worker] = []

    def gather(self, num_calls: int) -> None:
        """Starts the workers that so many calls need, others in the place of those that have died idle."""
        for worker in [worker for worker in self.workers if not worker.process.is_alive()]:
            worker.end(0.0)
            self.workers.remove(worker)
        while len(self.workers) < min(self._size, num_calls):
            self.workers.append(Worker(self._task))

    def take_answer(self, number: int) -> Answer | None:
        """What a worker answers; None from one that has died."""
        answer = self.workers[number].receive()
        if answer is not None:
            self._deaths = 0
        return answer

    def replace(self, number: int, *, timed_out: bool) -> str:
        """Puts another worker in the place of one that has died or must; returns the reason, or raises EngineError."""
        exit_code = self.workers[number].end(0.0 if timed_out else STOP_SECONDS)
        reason = "episode_timeout" if timed_out else f"worker died (exit code {exit_code})"
        self._deaths += 1
        if self._deaths >= max(MAX_DEATHS, self._size + 1):
            raise EngineError(
                f"{self._deaths} workers were lost one after another, the last one: {reason}; "
                "the simulator may be crashing, or memory may be short (fewer --threads need less)"
            )
        self.workers[number] = Worker(self._task)
        return reason


class WorkerEngine:
    """Evaluates in `workers` processes, each with one thread.

    A chunk may take `episode_timeout` seconds of wall time for each of its episodes; None is no limit.
    """

    def __init__(self, task: Task, *, chunk_size: int, workers: int, episode_timeout: float | None = None):
        self._crew = _Crew(task, workers)
        self._chunk_size = chunk_size
        self._episode_timeout = episode_timeout
        # Before multiprocessing ends its processes, for which it would wait for ever: these do not heed SIGTERM.
        Finalize(self, stop, (self._crew.workers,), exitpriority=0)

    def evaluate(self, population: Population, context: Context) -> Rollouts:
        """Lets every member act in its episodes; EngineError where that cannot be done."""
        chunks = cut(len(population), self._chunk_size)
        calls = [("evaluate", (population, ids, context, 1)) for ids in chunks]
        limit = None
        if self._episode_timeout is not None:
            shortest = replace(context, episodes=context.episodes[:1], max_episode_steps=1)
            rehearsals = [("evaluate", (population, ids, shortest, 1)) for ids in chunks]
            limit = _Limit(self._episode_timeout * max(map(len, chunks)) * len(context.episodes), rehearsals)

        def give_up(number: int, reason: str) -> Rollouts:
            ids = chunks[number]
            warnings.warn(
                f"members {ids.start} to {ids.stop - 1} failed in {context.purpose.name.lower()} at generation "
                f"{context.generation}: {reason}",
                stacklevel=2,
            )
            return failed(ids, context, reason)

        return joined(self._map(calls, give_up, limit))

    def combine(
        self, population: Population, utilities: Float[np.ndarray, " members"]
    ) -> Float64[np.ndarray, " params"]:
        """Sum over members of utility times noise, added in chunk order."""

        def give_up(number: int, reason: str) -> Float64[np.ndarray, " params"]:
            raise EngineError(f"the sum of noise over members {chunks[number]} failed: {reason}")

        chunks = cut(len(population), self._chunk_size)
        return added(self._map([("combine", (population, ids, utilities)) for ids in chunks], give_up, None))

    def close(self) -> None:
        """Ends the workers."""
        stop(self._crew.workers)

    def _map(self, calls: Sequence[Call], give_up: Callable[[int, str], Any], limit: _Limit | None) -> list[Any]:
        """The answers to all calls, in their order, whoever gives them; `give_up` answers what costs too much."""
        self._crew.gather(len(calls))
        try:
            return _Dispatch(self._crew, calls, give_up, limit).run()
        except BaseException:
            self.close()  # so that no late answer is taken for another call's
            raise


class _Dispatch:
    """Gives calls to a crew until all are answered; see `WorkerEngine._map`."""

    def __init__(self, crew: _Crew, calls: Sequence[Call], give_up: Callable[[int, str], Any], limit: _Limit | None):
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
        worker, call = self._crew.workers[number], self._busy[number]
        if self._limit is None:
            worker.send(self._calls[call])
            self._deadlines[number] = inf
        elif worker.new:
            worker.send(self._limit.rehearsals[call])
            self._deadlines[number] = time.monotonic() + START_SECONDS
        else:
            worker.send(self._calls[call])
            self._deadlines[number] = time.monotonic() + self._limit.seconds

    def _ready(self) -> list[int]:
        """Workers that have answered or died; none if the time of one is up before that."""
        patience = min(self._deadlines[number] for number in self._busy) - time.monotonic()
        connections = [self._crew.workers[number].connection for number in self._busy]
        ready = wait(connections, None if patience == inf else max(0.0, patience))
        return [number for number in self._busy if self._crew.workers[number].connection in ready]

    def _take_answer(self, number: int) -> None:
        rehearsed = self._limit is not None and self._crew.workers[number].new
        answer = self._crew.take_answer(number)
        if answer is None:
            self._lose(number, timed_out=False)
            return
        succeeded, value = answer
        if not succeeded:
            raise EngineError(value)
        if rehearsed:
            self._send(number)
        else:
            self._answers[self._busy.pop(number)] = value

    def _lose(self, number: int, *, timed_out: bool) -> None:
        """Has the call of a dead or late worker tried again, or given up."""
        reason = self._crew.replace(number, timed_out=timed_out)
        call = self._busy.pop(number)
        self._cost[call] += 1
        if self._cost[call] < MAX_TRIES:
            warnings.warn(f"a worker was replaced: {reason}", stacklevel=2)
            self._waiting.appendleft(call)
        else:
            self._answers[call] = self._give_up(call, reason)
