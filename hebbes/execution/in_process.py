"""InProcess: the engine that evaluates chunks in threads of this process.

Simulators and kernels release the interpreter lock. So one chunk's policies act while another chunk's simulators step,
and no core waits for the slowest sub-environment of a batch.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.transport import Host, call_function

STOP_SECONDS = 2.0
"""How long `close` waits for running calls. A simulator that hangs cannot be ended."""

_Call: TypeAlias = tuple[int, Callable[..., Any], Sequence[Any]]


class ThreadPool:
    """A worker of several threads, which take the calls in turn.

    Unlike those of `concurrent.futures`, they do not delay the exit of the process if a simulator hangs.
    """

    def __init__(self, host: Host, threads: int):
        self.host = host
        self.answers: SimpleQueue[tuple[int | None, Any]] = SimpleQueue()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()
        self.answers.put((None, None))

    def send(self, ticket: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Sends a call."""
        self._calls.put((ticket, function, arguments))

    def end_if_stopped(self) -> None:
        """Does nothing: this process is not stopped."""

    def close(self) -> None:
        """Drops the calls that have not begun, and waits a little for the others."""
        with suppress(Empty):
            while True:
                self._calls.get_nowait()
        self.host.abandon()
        for _ in self._threads:
            self._calls.put(None)
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self.host.close()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            ticket, function, arguments = call
            try:
                answer = call_function(self.host, function, arguments)
            except BaseException as error:  # such as an exit of ours; the dispatch raises it again
                answer = error
            self.answers.put((ticket, answer))
            del call, function, arguments, answer  # so that a waiting thread keeps no objects alive


class ThreadTransport:
    """One worker, of threads of this process."""

    num_workers = 1
    starts_at_once = True

    def __init__(self, make_host: Callable[[], Host], threads: int):
        self.threads_per_worker = threads
        self.capacity = 2 * threads  # so that no thread waits for the dispatch
        self._make_host = make_host
        self._pool: ThreadPool | None = None

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def start_worker(self) -> ThreadPool:
        """The threads."""
        self._pool = ThreadPool(self._make_host(), self.threads_per_worker)
        return self._pool

    def wait(self, workers: Sequence[ThreadPool], timeout: float) -> Sequence[tuple[ThreadPool, int | None, Any]]:
        """The next answer; nothing after `timeout` seconds."""
        (pool,) = workers
        with suppress(Empty):
            return [(pool, *pool.answers.get(timeout=timeout))]
        return []

    def end_worker(self, worker: ThreadPool) -> None:
        """Stops the threads at their next env step."""
        worker.close()

    def close(self) -> None:
        """Stops the threads at their next env step."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


class InProcess(ChunkEngine):
    """Evaluates in threads of this process."""

    transport_class = ThreadTransport
    uses_processes = False
