"""The process engine: evaluates chunks in spawned processes, for simulators that hold Python's interpreter lock.

A lost worker is replaced, and another worker evaluates its chunk, with the same bits. What else happens depends on why
it was lost:

- It died during its chunk, or it was killed here because the chunk took longer than `episode_timeout`. A chunk that
  loses `MAX_TRIES` workers in this way fails with all its members. The evaluation goes on, even if many chunks fail.
- It was killed from outside (SIGKILL by an operator, or by the kernel when memory is short), or it never reported that
  it runs. This counts against no chunk. But `MAX_DEATHS` such losses without an answer in between end the evaluation.
- It was killed here because its warm-up, a chunk's first env step, took longer than `START_SECONDS`. This counts
  against the chunk. Until some worker has finished a warm-up, it also counts as a loss of the second kind. So a
  simulator that always hangs in its constructor or first env step ends the run after a few times `START_SECONDS`. If
  it hangs there only for some members, only their chunks fail.

Time is limited only with an `episode_timeout`. Only then can a result depend on the wall clock.
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
from hebbes.execution.chunks import Task, cut_into_chunks, join_rollouts, make_failed_rollouts, sum_in_order
from hebbes.execution.worker_process import STOP_SECONDS, Call, Stage, Worker, stop_workers

MAX_TRIES = 2
"""Number of lost workers after which a chunk fails."""

MAX_DEATHS = 5
"""Number of workers lost by no chunk's fault, without an answer in between, that ends the evaluation.

It is higher if there are more workers, because one cause may kill all of them at once."""

START_SECONDS = 60.0
"""Time for a new worker to start (imports), and again for its warm-up: simulators, compilation, one env step."""


@dataclass(frozen=True)
class _TimeLimit:
    """How long a call may take after the worker has warmed up with a smaller call."""

    seconds: float = inf
    warm_up_calls: Sequence[Call] = ()


class _WorkerPool:
    """The workers. Dead ones are replaced."""

    def __init__(self, task: Task, size: int):
        self._task = task
        self._size = size
        self.deaths = 0
        """Workers lost by no chunk's fault since the last answer."""
        self.has_warmed_up = False
        """Whether any worker has ever finished a warm-up."""
        self.workers: list[Worker] = []

    def start_workers(self, num_calls: int) -> None:
        """Starts the workers that this many calls need, and replaces those that died while idle."""
        for worker in [worker for worker in self.workers if not worker.process.is_alive()]:
            worker.end(0.0)
            self.workers.remove(worker)
        while len(self.workers) < min(self._size, num_calls):
            self.workers.append(Worker(self._task))

    def replace_worker(self, number: int, reason: str) -> None:
        """Starts a new worker in place of a lost one; EngineError after too many losses."""
        if self.deaths >= max(MAX_DEATHS, self._size + 1):
            raise EngineError(
                f"{self.deaths} workers were lost without an answer in between, the last one: {reason}; "
                "memory may be short, or the machine overloaded (fewer --threads need less memory)"
            )
        self.workers[number] = Worker(self._task)


class ProcessEngine:
    """Evaluates in `workers` processes of one thread each.

    A chunk may take `episode_timeout` seconds of wall time for each of its episodes. None means no limit.
    """

    def __init__(self, task: Task, *, chunk_size: int, workers: int, episode_timeout: float | None = None):
        self._task = task
        self._worker_pool = _WorkerPool(task, workers)
        self._chunk_size = chunk_size
        self._episode_timeout = episode_timeout
        # Runs before multiprocessing ends its processes with SIGTERM. Ours ignore it, so that would wait forever.
        Finalize(self, stop_workers, (self._worker_pool.workers,), exitpriority=0)

    def evaluate(self, population: Population, context: Context, members: range | None = None) -> Rollouts:
        """The results of the given members, or of all, in their episodes; EngineError if they cannot be had."""
        members = range(len(population)) if members is None else members
        chunks = cut_into_chunks(members.stop, self._chunk_size, members.start)
        calls = [("evaluate", (population, ids, context, 1)) for ids in chunks]
        limit, num_cases = _TimeLimit(), self._task.count_cases(context)
        if self._episode_timeout is not None:
            shortest = replace(context, episodes=context.episodes[:1], max_episode_steps=1)
            warm_up_calls = [("evaluate", (population, ids, shortest, 1)) for ids in chunks]
            limit = _TimeLimit(self._episode_timeout * max(map(len, chunks)) * num_cases, warm_up_calls)

        def give_up(number: int, reason: str) -> Rollouts:
            ids = chunks[number]
            say(
                f"members {ids.start} to {ids.stop - 1} failed in {context.purpose.name.lower()} at generation "
                f"{context.generation}: {reason}"
            )
            return make_failed_rollouts(ids, num_cases, reason)

        return join_rollouts(self._map(calls, give_up, limit))

    def weighted_noise_sum(
        self, population: Population, utilities: Float[np.ndarray, " members"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum over members of utility * noise**power; the sums of the chunks are added in chunk order."""

        def give_up(number: int, reason: str) -> Float64[np.ndarray, " params"]:
            raise EngineError(f"the sum of noise over members {chunks[number]} failed: {reason}")

        chunks = cut_into_chunks(len(population), self._chunk_size)
        calls = [("weighted_noise_sum", (population, ids, utilities, power)) for ids in chunks]
        return sum_in_order(self._map(calls, give_up, _TimeLimit()))

    def close(self) -> None:
        """Ends the workers."""
        stop_workers(self._worker_pool.workers)

    def _map(self, calls: Sequence[Call], give_up: Callable[[int, str], Any], limit: _TimeLimit) -> list[Any]:
        """The answers to all calls, in order. `give_up` answers calls that lose too many workers."""
        self._worker_pool.start_workers(len(calls))
        try:
            return _Dispatch(self._worker_pool, calls, give_up, limit).run()
        except BaseException:
            self.close()  # so that no late answer is mistaken for that of another call
            raise


class _Dispatch:
    """Gives calls to the workers until all are answered; see `ProcessEngine._map`."""

    def __init__(self, pool: _WorkerPool, calls: Sequence[Call], give_up: Callable[[int, str], Any], limit: _TimeLimit):
        self._worker_pool, self._calls, self._give_up, self._limit = pool, calls, give_up, limit
        self._answers: dict[int, Any] = {}
        self._waiting = deque(range(len(calls)))
        self._busy: dict[int, int] = {}  # number of a worker -> number of its call
        self._deadlines: dict[int, float] = {}  # number of a worker -> deadline of its call
        self._workers_lost: Counter[int] = Counter()  # number of a call -> workers that it lost

    def run(self) -> list[Any]:
        """The answers, in the order of the calls."""
        while len(self._answers) < len(self._calls):
            self._hand_out_calls()
            for number in self._find_ready_workers():
                self._take_answer(number)
            now = time.monotonic()
            for number in [number for number in self._busy if self._deadlines[number] < now]:
                self._replace_lost_worker(number, timed_out=True)
        return [self._answers[call] for call in range(len(self._calls))]

    def _hand_out_calls(self) -> None:
        for number in range(len(self._worker_pool.workers)):
            if self._waiting and number not in self._busy:
                self._busy[number] = self._waiting.popleft()
                self._send(number)

    def _send(self, number: int) -> None:
        """Sends the worker its warm-up call or its call; a worker that is starting gets a deadline only."""
        worker, call = self._worker_pool.workers[number], self._busy[number]
        seconds = START_SECONDS
        if self._needs_warm_up(worker):
            worker.send(self._limit.warm_up_calls[call])
        elif worker.stage is not Stage.STARTING:
            worker.send(self._calls[call])
            seconds = self._limit.seconds
        self._deadlines[number] = inf if self._limit.seconds == inf else time.monotonic() + seconds

    def _needs_warm_up(self, worker: Worker) -> bool:
        return bool(self._limit.warm_up_calls) and worker.stage is Stage.RUNNING

    def _find_ready_workers(self) -> list[int]:
        """Waits until some workers have answered or died; none if a deadline passes first."""
        timeout = min(self._deadlines[number] for number in self._busy) - time.monotonic()
        connections = [self._worker_pool.workers[number].connection for number in self._busy]
        ready = wait(connections, None if timeout == inf else max(0.0, timeout))
        return [number for number in self._busy if self._worker_pool.workers[number].connection in ready]

    def _take_answer(self, number: int) -> None:
        worker = self._worker_pool.workers[number]
        answer = worker.receive()
        if answer is None:
            self._replace_lost_worker(number, timed_out=False)
            return
        succeeded, value = answer
        if not succeeded:
            raise EngineError(value)
        if worker.stage is Stage.STARTING:
            worker.stage = Stage.RUNNING
            self._send(number)
        elif self._needs_warm_up(worker):
            worker.stage = Stage.WARMED_UP
            self._worker_pool.has_warmed_up = True
            self._send(number)
        else:
            self._worker_pool.deaths = 0
            self._answers[self._busy.pop(number)] = value

    def _replace_lost_worker(self, number: int, *, timed_out: bool) -> None:
        """Replaces a dead or late worker. Its call is tried again or given up."""
        worker = self._worker_pool.workers[number]
        exit_code = worker.end(0.0 if timed_out else STOP_SECONDS)
        killed_from_outside = not timed_out and exit_code == -SIGKILL
        reason = self._describe_timeout(worker) if timed_out else _describe_death(worker, exit_code)
        blameless = killed_from_outside or worker.stage is Stage.STARTING
        cannot_begin = timed_out and self._needs_warm_up(worker) and not self._worker_pool.has_warmed_up
        self._worker_pool.deaths += blameless or cannot_begin
        self._worker_pool.replace_worker(number, reason)
        call = self._busy.pop(number)
        self._workers_lost[call] += not blameless
        if self._workers_lost[call] < MAX_TRIES:
            say(f"a worker was replaced: {reason}")
            self._waiting.appendleft(call)
        else:
            self._answers[call] = self._give_up(call, reason)

    def _describe_timeout(self, worker: Worker) -> str:
        if worker.stage is Stage.STARTING:
            return f"worker did not start in {START_SECONDS:g} s"
        return f"simulator did not begin in {START_SECONDS:g} s" if self._needs_warm_up(worker) else "episode_timeout"


def _describe_death(worker: Worker, exit_code: int | None) -> str:
    if exit_code == -SIGKILL:
        return "worker was killed from outside"
    return f"worker died{' at its start' if worker.stage is Stage.STARTING else ''} (exit code {exit_code})"
