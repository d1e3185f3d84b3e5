"""One worker process: the code that it runs, and the parent's interface to it."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum, auto
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias

from threadpoolctl import threadpool_limits

from hebbes.contracts.errors import describe_with_traceback
from hebbes.execution.chunks import ChunkEvaluator, Task
from hebbes.execution.parents_signals import PARENTS_SIGNALS

STOP_SECONDS = 1.0
"""Seconds in which all workers together may stop by themselves before they are killed."""

Call: TypeAlias = tuple[str, tuple[Any, ...]]
"""The name of a method of ChunkEvaluator, and its arguments."""

Answer: TypeAlias = tuple[bool, Any]
"""(True, value) or (False, report of an exception)."""


class Stage(Enum):
    """The state of a worker."""

    STARTING = auto()
    """It has not yet reported that it runs."""
    RUNNING = auto()
    """It has finished its imports and may have done calls."""
    WARMED_UP = auto()
    """It has also finished a warm-up call; see `hebbes.execution.process_engine`."""


_PR_SET_PDEATHSIG = 1


class Worker:
    """A process whose first answer reports that it runs. Then it does one call after another."""

    def __init__(self, task: Task) -> None:
        context = multiprocessing.get_context("spawn")  # a forked process would hang in EnvPool
        self.connection, child = context.Pipe()
        dies_with_thread = threading.current_thread() is threading.main_thread()
        self.process = context.Process(target=_serve, args=(child, task, dies_with_thread), daemon=True)
        self.stage = Stage.STARTING
        resource_tracker.ensure_running()  # if it started within the next lines, it would unblock the signals
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, PARENTS_SIGNALS)  # the process inherits this mask
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        child.close()

    def send(self, call: Call) -> None:
        """Sends a call. If the worker has died, the parent notices when it waits for the answer."""
        with suppress(OSError):
            self.connection.send(call)

    def receive(self) -> Answer | None:
        """An answer that has arrived; None if the worker has died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def end(self, timeout: float) -> int | None:
        """The exit code if the process ends by itself within `timeout` seconds; otherwise kills it and returns None."""
        self.connection.close()
        self.process.join(timeout)
        exit_code = self.process.exitcode
        self.process.kill()
        self.process.join()
        return exit_code


def stop_workers(workers: list[Worker]) -> None:
    """Ends all workers and empties the list. Idle ones stop by themselves, others are killed after `STOP_SECONDS`."""
    for worker in workers:
        worker.connection.close()
    deadline = time.monotonic() + STOP_SECONDS
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.join()
    workers.clear()


def _serve(connection: Connection, task: Task, dies_with_thread: bool) -> None:
    """The worker's main function: does one call after another until the parent closes the connection."""
    _end_with_parent(dies_with_thread)
    threadpool_limits(limits=1, user_api="blas")  # as in the training process; policies of users may need it
    evaluator = ChunkEvaluator(task, threads=1)
    try:
        connection.send((True, None))
        while True:
            method, arguments = connection.recv()
            answer: Answer
            try:
                answer = (True, getattr(evaluator, method)(*arguments))
            except Exception as error:  # a user's simulator may raise anything; the parent reports it
                answer = (False, describe_with_traceback(error))
            connection.send(answer)
    except (EOFError, OSError):  # the parent closed the connection, or died
        evaluator.close()


def _end_with_parent(dies_with_thread: bool) -> None:
    """Makes this process end when the parent is killed, even while a simulator hangs.

    A thread watches the parent. It cannot run while a simulator holds the interpreter lock, so on Linux the kernel also
    sends a signal. The kernel sends it when the thread that started this process ends. So this is used only if that is
    the parent's main thread.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch(sentinels: Sequence[int]) -> None:
        wait(sentinels)
        os._exit(1)

    if sys.platform == "linux" and dies_with_thread:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=watch, args=([parent.sentinel],), daemon=True).start()
