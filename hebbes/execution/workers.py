"""Workers: the engine that evaluates chunks in spawned processes, which can be killed, and have a lock of their own."""

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize
from typing import Any

from threadpoolctl import threadpool_limits

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import describe_with_traceback
from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.chunks import Task
from hebbes.execution.parents_signals import PARENTS_SIGNALS, delay_signals
from hebbes.execution.stopped_process import is_stopped
from hebbes.execution.transport import Cause, Host, Loss, call_function

STOP_SECONDS = 1.0
"""Seconds in which all workers together may stop by themselves before they are killed."""

_PR_SET_PDEATHSIG = 1


class ProcessWorker:
    """A process with a host of its own."""

    def __init__(self, make_host: Callable[[], Host]):
        context = multiprocessing.get_context("spawn")  # a forked process would hang in EnvPool
        self.connection, child = context.Pipe()
        dies_with_thread = threading.current_thread() is threading.main_thread()
        # no daemon, because daemons may not have processes, and simulators may
        self.process = context.Process(target=_serve, args=(child, make_host, dies_with_thread))
        self._took_its_call, self._was_stopped, self._was_killed = True, False, False
        resource_tracker.ensure_running()  # if it started within the next lines, it would unblock the signals
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, PARENTS_SIGNALS)  # the process inherits this mask
        try:
            with _hide_main_of_stdin():
                self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        child.close()

    def send(self, ticket: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Sends a call. If the worker has died, its next answer says so. EngineError if the call cannot be pickled.

        A stopped one is killed first: a call that its pipe cannot hold would wait for it.
        """
        self.end_if_stopped()
        try:
            data = ForkingPickler.dumps((ticket, function, arguments))
        except Exception as error:  # whatever a user's class raises
            raise EngineError(describe_with_traceback(error)) from error
        try:
            self.connection.send_bytes(data)
        except OSError:
            self._took_its_call = False

    def end_if_stopped(self) -> None:
        """Kills the process if it has been stopped, because no other signal reaches it."""
        if self.process.pid is not None and is_stopped(self.process.pid):
            self._was_stopped = True
            self.kill()

    def kill(self) -> None:
        """Kills the process, and those that its simulators have started, which are in its group and may outlive it.

        Only once, because the number of a group that is gone may become that of another.
        """
        if self._was_killed or self.process.pid is None:
            return
        self._was_killed = True
        with suppress(ProcessLookupError, PermissionError):  # it has no group of its own yet, or none any more
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def receive(self) -> tuple[int | None, Any]:
        """The ticket and the answer that have arrived."""
        try:
            data = self.connection.recv_bytes()
        except (EOFError, OSError):
            has_ended = self._has_ended()  # its connection is closed shortly before
            self.kill()
            exit_code = self.process.exitcode if has_ended else None
            if exit_code == -signal.SIGKILL:
                return None, Loss(f"worker was {'stopped' if self._was_stopped else 'killed'} from outside", "kill")
            cause: Cause = "call" if self._took_its_call else "kill"
            return None, Loss(
                f"worker died (exit code {exit_code})", cause, ended_itself=exit_code is not None and exit_code >= 0
            )
        try:
            ticket, answer = ForkingPickler.loads(data)
        except Exception as error:  # whatever a user's class raises
            return None, EngineError(describe_with_traceback(error))
        return ticket, answer

    def _has_ended(self) -> bool:
        """Whether the process ends within `STOP_SECONDS`.

        Its sentinel alone would not tell: on a busy machine there is time between the end of its pipes and its own.
        """
        wait([self.process.sentinel], STOP_SECONDS)
        deadline = time.monotonic() + STOP_SECONDS
        while self.process.exitcode is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return True


@contextmanager
def _hide_main_of_stdin() -> Iterator[None]:
    """Processes that start meanwhile do not import a script that was read from standard input: they cannot find it."""
    main = sys.modules["__main__"]
    if getattr(main, "__file__", None) != "<stdin>":
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = "<stdin>"


class ProcessTransport:
    """Spawned processes of one thread each, reached through pipes."""

    threads_per_worker = capacity = 1
    starts_at_once = True

    def __init__(self, make_host: Callable[[], Host], threads: int):
        self.num_workers = threads
        self.workers: list[ProcessWorker] = []
        self._make_host = make_host
        # Runs before multiprocessing waits for its processes.
        Finalize(self, _stop_workers, (self.workers,), exitpriority=0)

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def start_worker(self) -> ProcessWorker:
        """A new process; EngineError if the system has no more."""
        with delay_signals():  # one that stops the program must find the process in the list
            try:
                self.workers.append(ProcessWorker(self._make_host))
            except OSError as error:
                raise EngineError(f"a worker process cannot be started: {error.strerror or error}") from error
        return self.workers[-1]

    def wait(self, workers: Sequence[ProcessWorker], timeout: float) -> Sequence[tuple[ProcessWorker, int | None, Any]]:
        """The answers of those that have answered or died; none after `timeout` seconds."""
        ready = wait([worker.connection for worker in workers], timeout)
        return [(worker, *worker.receive()) for worker in workers if worker.connection in ready]

    def end_worker(self, worker: ProcessWorker) -> None:
        """Kills the process."""
        worker.connection.close()
        worker.kill()
        worker.process.join()
        self.workers.remove(worker)

    def close(self) -> None:
        """Ends all processes. Idle ones stop by themselves, others are killed after `STOP_SECONDS`."""
        _stop_workers(self.workers)


def _stop_workers(workers: list[ProcessWorker]) -> None:
    for worker in workers:
        worker.connection.close()
    deadline = time.monotonic() + STOP_SECONDS
    for worker in workers:
        wait([worker.process.sentinel], max(0.0, deadline - time.monotonic()))
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.process.join()
    workers.clear()


def _serve(connection: Connection, make_host: Callable[[], Host], dies_with_thread: bool) -> None:
    """Does one call after another until the parent closes the connection."""
    _end_with_parent(dies_with_thread)
    _leave_signals_to_parent()
    os.register_at_fork(after_in_child=connection.close)  # while a process has it, the parent takes this one for alive
    gc.set_threshold(10_000, 10, 10)  # as in `hebbes.programs.startup`
    threadpool_limits(limits=1, user_api="blas")  # as in the training process; policies of users may need it
    host = make_host()
    try:
        connection.send((None, None))  # it can do calls
        while True:
            _do_call(connection, host)
    except (EOFError, OSError):  # the parent closed the connection, or died
        host.close()


def _leave_signals_to_parent() -> None:
    """Signals to the parent's process group reach neither this process nor those that a simulator starts.

    Those sent to this process do nothing. For the others they mean what they always do, unless the parent ignores them.
    """
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # this group is not the terminal's, and may print there all the same
    # neither ignored nor blocked, because programs inherit that; a handler ends with the program's start
    handled = [number for number in PARENTS_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    usual = {number: signal.signal(number, lambda number, frame: None) for number in handled}

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    os.register_at_fork(after_in_child=restore)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PARENTS_SIGNALS)


def _do_call(connection: Connection, host: Host) -> None:
    """Does the next call. One that cannot be read or answered, such as a function of no module, is an EngineError."""
    call, ticket = connection.recv_bytes(), None
    try:
        ticket, function, arguments = ForkingPickler.loads(call)
        answer = ForkingPickler.dumps((ticket, call_function(host, function, arguments)))
    except Exception as error:  # whatever a user's class raises when it is pickled
        answer = ForkingPickler.dumps((ticket, EngineError(describe_with_traceback(error))))
    connection.send_bytes(answer)


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


class Workers(ChunkEngine):
    """Evaluates in worker processes."""

    transport_class = ProcessTransport
    uses_processes = True

    def __init__(self, task: Task, **options: Any):
        task.check_can_be_sent(ForkingPickler.dumps)
        super().__init__(task, **options)
