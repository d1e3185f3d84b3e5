"""InProcess: the engine that evaluates chunks in threads of this process.

Simulators and kernels release the interpreter lock. So one chunk's policies act while another chunk's simulators step,
and no core waits for the slowest sub-environment of a batch.
"""

import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.transport import Host, call_function

STOP_SECONDS = 2.0
"""How long `close` waits for running calls. A simulator that hangs cannot be ended."""

_Call: TypeAlias = tuple[Callable[..., Any], Sequence[Any]]


class ThreadWorker:
    """A daemon thread, unlike those of `concurrent.futures`. A simulator that hangs in it does not delay the exit."""

    def __init__(self, host: Host, ready: "SimpleQueue[ThreadWorker]"):
        self._host, self._ready = host, ready
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._answer: Any = None
        self.thread = Thread(target=self._work, daemon=True)
        self.thread.start()

    def send(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Sends a call."""
        self._calls.put((function, arguments))

    def receive(self) -> Any:
        """The answer that has arrived."""
        answer, self._answer = self._answer, None
        return answer

    def end(self) -> None:
        """Makes the thread end after its call."""
        self._calls.put(None)

    def _work(self) -> None:
        self._ready.put(self)
        while (call := self._calls.get()) is not None:
            try:
                self._answer = call_function(self._host, *call)
            except BaseException as error:  # such as SystemExit; the dispatch raises it again
                self._answer = error
            del call  # so that a waiting thread keeps no objects alive
            self._ready.put(self)


class ThreadTransport:
    """Threads that share one host."""

    def __init__(self, make_host: Callable[[], Host], num_workers: int):
        self.num_workers = self.workers_per_host = num_workers
        self._make_host = make_host
        self._host: Host | None = None
        self._workers: list[ThreadWorker] = []
        self._ready: SimpleQueue[ThreadWorker] = SimpleQueue()

    def start_worker(self) -> ThreadWorker:
        """A new thread."""
        if self._host is None:
            self._host = self._make_host()
        self._workers.append(ThreadWorker(self._host, self._ready))
        return self._workers[-1]

    def wait(self, workers: Sequence[ThreadWorker], timeout: float | None) -> list[ThreadWorker]:
        """The worker that has an answer; none after `timeout` seconds."""
        try:
            return [self._ready.get(timeout=timeout)]
        except Empty:
            return []

    def end_worker(self, worker: ThreadWorker) -> None:
        """Makes a thread end after its call. It cannot be killed."""
        worker.end()

    def close(self) -> None:
        """Stops running calls, waits a little for them, and frees the host."""
        if self._host is None:
            return
        self._host.abandon()
        for worker in self._workers:
            worker.end()
        deadline = time.monotonic() + STOP_SECONDS
        while self._workers:
            self._workers.pop().thread.join(max(0.0, deadline - time.monotonic()))
        self._host.close()
        self._host, self._ready = None, SimpleQueue()  # so that late answers go nowhere


class InProcess(ChunkEngine):
    """Evaluates in threads of this process."""

    transport_class = ThreadTransport
