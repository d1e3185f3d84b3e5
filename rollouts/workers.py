"""The worker engine: chunks run in spawned processes, for simulators that hold Python's interpreter lock.

A worker that dies is replaced and its chunk evaluated again, with the same bits; after `MAX_DEATHS` deaths within one
call the engine gives up.
"""

import itertools
import multiprocessing
import signal
import traceback
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from contracts.engine import Context, Rollouts
from contracts.population import Population
from rollouts.chunks import ChunkEvaluator, Task, added, cut, joined

MAX_DEATHS = 5
"""Deaths of workers within one call after which something is wrong with the work, not with a worker."""


class WorkerError(RuntimeError):
    """The workers could not do the work: a simulator raised, or workers kept dying."""


def _serve(connection: Connection, task: Task) -> None:
    """A worker's life: does one call after another until the other end closes."""
    evaluator = ChunkEvaluator(task, threads=1)
    try:
        while True:
            ticket, method, arguments = connection.recv()
            try:
                reply = (ticket, True, getattr(evaluator, method)(*arguments))
            except Exception:  # whatever a user's simulator raises is reported, not swallowed
                reply = (ticket, False, traceback.format_exc())
            connection.send(reply)
    except (EOFError, OSError):  # the other end was closed, or died
        evaluator.close()


class _Worker:
    def __init__(self, task: Task):
        context = multiprocessing.get_context("spawn")  # a forked process hangs in EnvPool
        self.connection, child = context.Pipe()
        self.process = context.Process(target=_serve, args=(child, task), daemon=True)
        inherited = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
        self.process.start()
        signal.signal(signal.SIGINT, inherited)
        child.close()

    def send(self, call: tuple[int, str, tuple[Any, ...]]) -> None:
        """Sends a call; a worker that has died is found out when its answer is awaited."""
        with suppress(OSError):
            self.connection.send(call)

    def receive(self) -> tuple[int, bool, Any] | None:
        """Ticket, success and value of an answer that has come; None from a worker that has died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def stop(self) -> None:
        """Ends the process."""
        self.connection.close()
        self.process.join(timeout=1)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _value(method: str, answer: tuple[int, bool, Any]) -> Any:
    _, succeeded, value = answer
    if not succeeded:
        raise WorkerError(f"a worker failed in {method}:\n{value}")
    return value


class WorkerEngine:
    """Evaluates in `workers` processes, each with one thread."""

    def __init__(self, task: Task, *, chunk_size: int, workers: int):
        self._task = task
        self._chunk_size = chunk_size
        self._num_workers = workers
        self._workers: list[_Worker] = []
        self._tickets = itertools.count()

    def evaluate(self, population: Population, context: Context) -> Rollouts:
        """Lets every member act in its episodes."""
        chunks = cut(len(population), self._chunk_size)
        return joined(self._map("evaluate", [(population, ids, context, 1) for ids in chunks]))

    def combine(
        self, population: Population, utilities: Float[np.ndarray, " members"]
    ) -> Float64[np.ndarray, " params"]:
        """Sum over members of utility times noise, added in chunk order."""
        chunks = cut(len(population), self._chunk_size)
        return added(self._map("combine", [(population, ids, utilities) for ids in chunks]))

    def close(self) -> None:
        """Ends the workers."""
        for worker in self._workers:
            worker.stop()
        self._workers.clear()

    def _map(self, method: str, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answers to all calls, in their order, whoever gives them."""
        while len(self._workers) < min(self._num_workers, len(calls)):
            self._workers.append(_Worker(self._task))
        ticket = next(self._tickets)
        answers: dict[int, Any] = {}
        waiting = deque(range(len(calls)))
        busy: dict[int, int] = {}  # number of a worker -> number of its call
        deaths = 0
        while len(answers) < len(calls):
            for number, worker in enumerate(self._workers):
                if waiting and number not in busy:
                    busy[number] = waiting.popleft()
                    worker.send((ticket, method, calls[busy[number]]))
            ready = wait([self._workers[number].connection for number in busy])
            for number in [number for number in busy if self._workers[number].connection in ready]:
                answer = self._workers[number].receive()
                if answer is None:
                    deaths += 1
                    waiting.appendleft(busy.pop(number))
                    self._replace(number, deaths)
                elif answer[0] == ticket:  # else it answers a call that an error made us leave
                    answers[busy.pop(number)] = _value(method, answer)
        return [answers[call] for call in range(len(calls))]

    def _replace(self, number: int, deaths: int) -> None:
        worker = self._workers[number]
        worker.stop()
        if deaths >= MAX_DEATHS:
            raise WorkerError(
                f"{deaths} workers died in one call, the last with exit code {worker.process.exitcode}; "
                "the simulator may be crashing, or memory may be short (fewer --threads need less)"
            )
        warnings.warn(f"a worker died with exit code {worker.process.exitcode} and was replaced", stacklevel=2)
        self._workers[number] = _Worker(self._task)
