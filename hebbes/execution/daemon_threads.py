"""DaemonThreads: a thread pool that does not delay the exit of the process.

`concurrent.futures` joins its threads when the interpreter exits. A simulator that hangs in one of them would keep the
process alive forever.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_Call: TypeAlias = tuple["Future[Any]", Callable[[Any], Any], Any]


class DaemonThreads:
    """Runs calls in `count` threads."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of `function` for all items, in order; raises the exception of the first item that failed.

        Calls that have not begun when this ends, for example after an exception, are canceled.
        """
        while len(self._threads) < self._count:
            self._threads.append(Thread(target=_work, args=(self._calls,), daemon=True))
            self._threads[-1].start()
        calls = [(Future[Result](), function, item) for item in items]
        for call in calls:
            self._calls.put(call)
        try:
            return [future.result() for future, _, _ in calls]
        finally:
            for future, _, _ in calls:
                future.cancel()

    def close(self, timeout: float) -> None:
        """Ends the threads. Waits for running calls, at most `timeout` seconds."""
        for _ in self._threads:
            self._calls.put(None)
        deadline = time.monotonic() + timeout
        while self._threads:
            self._threads.pop().join(max(0.0, deadline - time.monotonic()))


def _work(calls: "SimpleQueue[_Call | None]") -> None:
    while (call := calls.get()) is not None:
        future, function, item = call
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(item))
            except BaseException as error:  # `map` raises it again
                future.set_exception(error)
        del call, future, function, item  # so that a waiting thread keeps no objects alive
