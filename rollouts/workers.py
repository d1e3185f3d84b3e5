"""The worker engine: chunks run in spawned processes, for simulators that hold Python's interpreter lock.

A worker that dies is replaced and its chunk evaluated again, with the same bits; after `MAX_DEATHS` deaths within one
call the engine gives up.
"""

import multiprocessing
import signal
import traceback
from collections import deque
from collections.abc import Sequence
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    evaluator = ChunkEvaluator(task)
    try:
        while True:
            method, arguments = connection.recv()
            try:
                reply = (True, getattr(evaluator, method)(*arguments))
            except Exception:  # whatever a user's simulator raises is reported, not swallowed
                reply = (False, traceback.format_exc())
            connection.send(reply)
    except (EOFError, OSError):  # the other end was closed, or died
        evaluator.close()


class _Worker:
    def __init__(self, task: Task):
        context = multiprocessing.get_context("spawn")  # a forked process hangs in EnvPool
        self.connection, child = context.Pipe()
        self.process = context.Process(target=_serve, args=(child, task), daemon=True)
        self.process.start()
        child.close()

    def stop(self) -> None:
        self.connection.close()
        self.process.join(timeout=1)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class WorkerEngine:
    """Evaluates in `workers` processes, each with one thread."""

    def __init__(self, task: Task, *, chunk_size: int, workers: int):
        self._task = task
        self._chunk_size = chunk_size
        self._workers = [_Worker(task) for _ in range(workers)]

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
        answers: dict[int, Any] = {}
        waiting = deque(range(len(calls)))
        busy: dict[int, int] = {}  # number of a worker -> number of its call
        deaths = 0
        while len(answers) < len(calls):
            for number in range(len(self._workers)):
                if waiting and number not in busy:
                    busy[number] = waiting.popleft()
                    self._send(number, (method, calls[busy[number]]))
            ready = wait([self._workers[number].connection for number in busy])
            for number in [number for number in busy if self._workers[number].connection in ready]:
                call = busy.pop(number)
                answer = self._receive(number)
                if answer is None:
                    deaths += 1
                    waiting.appendleft(call)
                    self._replace(number, deaths)
                    continue
                succeeded, value = answer
                if not succeeded:
                    raise WorkerError(f"a worker failed in {method}:\n{value}")
                answers[call] = value
        return [answers[call] for call in range(len(calls))]

    def _send(self, number: int, call: tuple[str, tuple[Any, ...]]) -> None:
        try:
            self._workers[number].connection.send(call)
        except OSError:
            return  # it died while idle: its connection reads as closed, which `_map` sees next

    def _receive(self, number: int) -> tuple[bool, Any] | None:
        try:
            return self._workers[number].connection.recv()
        except (EOFError, OSError):
            return None

    def _replace(self, number: int, deaths: int) -> None:
        worker = self._workers[number]
        worker.stop()
        if deaths >= MAX_DEATHS:
            raise WorkerError(
                f"{deaths} workers died in one call, the last with exit code {worker.process.exitcode}; "
                "the simulator may be crashing, or memory may be short (fewer --threads need less)"
            )
        self._workers[number] = _Worker(self._task)
