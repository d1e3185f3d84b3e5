"""One worker process: its life, and the parent's end of it."""

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

from hebbes.contracts.errors import report
from hebbes.execution.chunks import ChunkEvaluator, Task

STOP_SECONDS = 1.0
"""How long workers that are told to stop, or are dying, may take, all together, before they are killed."""

PARENTS_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What a terminal or a scheduler sends to the whole process group, which is for the parent to answer."""

Call: TypeAlias = tuple[str, tuple[Any, ...]]
"""Method of ChunkEvaluator and its arguments."""

Answer: TypeAlias = tuple[bool, Any]
"""True and the value, or False and the report of an exception."""


class Stage(Enum):
    """How far a worker has come."""

    STARTING = auto()
    """It has yet to say that it runs."""
    RUNNING = auto()
    """It has imported what it needs, and may have done calls."""
    REHEARSED = auto()
    """It has also rehearsed a call; see `hebbes.execution.process_engine`."""


_PR_SET_PDEATHSIG = 1


class Worker:
    """A process that first says that it runs, by an answer, then does one call after another."""

    def __init__(self, task: Task) -> None:
        context = multiprocessing.get_context("spawn")  # a forked process hangs in EnvPool
        self.connection, child = context.Pipe()
        dies_with_thread = threading.current_thread() is threading.main_thread()
        self.process = context.Process(target=_serve, args=(child, task, dies_with_thread), daemon=True)
        self.stage = Stage.STARTING
        resource_tracker.ensure_running()  # its start, else within the next lines, would unblock the signals
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, PARENTS_SIGNALS)  # the process inherits this
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        child.close()

    def send(self, call: Call) -> None:
        """Sends a call; a worker that has died is found out when its answer is awaited."""
        with suppress(OSError):
            self.connection.send(call)

    def receive(self) -> Answer | None:
        """An answer that has come; None from a worker that has died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def end(self, patience: float) -> int | None:
        """The exit code of a process that ends by itself within `patience` seconds; None for one killed after that."""
        self.connection.close()
        self.process.join(patience)
        exit_code = self.process.exitcode
        self.process.kill()
        self.process.join()
        return exit_code


def stop(workers: list[Worker]) -> None:
    """Ends all the workers and empties the list: idle ones by themselves, others killed after `STOP_SECONDS`."""
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
    """A worker's life: does one call after another until the other end closes."""
    _end_with_parent(dies_with_thread)
    threadpool_limits(limits=1, user_api="blas")  # as in the process that trains; policies of users may need it
    evaluator = ChunkEvaluator(task, threads=1)
    try:
        connection.send((True, None))
        while True:
            method, arguments = connection.recv()
            answer: Answer
            try:
                answer = (True, getattr(evaluator, method)(*arguments))
            except Exception as error:  # whatever a user's simulator raises is reported, not swallowed
                answer = (False, report(error))
            connection.send(answer)
    except (EOFError, OSError):  # the other end was closed, or died
        evaluator.close()


def _end_with_parent(dies_with_thread: bool) -> None:
    """Sees to it that this process ends when the parent is killed, even while it is stuck in a simulator.

    A thread watches the parent. It cannot run while a simulator holds the interpreter lock, hence Linux' signal; but
    that one comes when the thread that started this process ends, so it will do for the parent's main thread only.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch(sentinels: Sequence[int]) -> None:
        wait(sentinels)
        os._exit(1)

    if sys.platform == "linux" and dies_with_thread:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=watch, args=([parent.sentinel],), daemon=True).start()
