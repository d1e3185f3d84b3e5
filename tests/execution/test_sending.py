"""Jobs that cannot be sent to a worker process, or whose answers cannot."""

import multiprocessing
import sys
from dataclasses import replace
from threading import Lock
from types import FunctionType, ModuleType
from unittest.mock import Mock

import pytest

from hebbes.contracts.engine import EngineError
from hebbes.execution import workers
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.engine_options import EngineOptions
from hebbes.execution.engines import make_engine
from hebbes.execution.episode import Agent
from hebbes.execution.workers import ProcessTransport
from hebbes.policies.linear import Linear
from tests.execution.scripted_tasks import make_task
from tests.execution.toy_transport import Counter, count_up


def make_lock(host):
    return Lock()


class Unreadable:
    """Pickles, and raises the error when it is read."""

    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        return raise_error, (self.error,)


def raise_error(error):
    raise error


def answer_unreadably(host, error):
    return Unreadable(error)


def test_what_cannot_be_sent_between_processes_is_an_error_that_says_so(monkeypatch):
    module = ModuleType("only_in_this_process")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.work = FunctionType(make_lock.__code__, {"__name__": module.__name__}, "work")
    module.work.__qualname__ = "work"
    dispatch = Dispatch(ProcessTransport(Counter, 1))
    cases = (make_lock, "cannot pickle '_thread.lock'"), (module.work, "No module named 'only_in_this")
    for function, message in cases:
        with pytest.raises(EngineError, match=message):
            dispatch.collect([dispatch.submit(function)])
    with pytest.raises(EngineError, match="no descriptor is left"):
        dispatch.collect([dispatch.submit(count_up, CannotBeRead())])
    dispatch.close()


@pytest.mark.parametrize("error", [FileNotFoundError(2, "no such chip"), KeyError("no such chip")])
def test_an_answer_that_cannot_be_read_is_no_dead_worker(error):
    dispatch = Dispatch(ProcessTransport(Counter, 1))
    with pytest.raises(EngineError, match="no such chip"):
        dispatch.collect([dispatch.submit(answer_unreadably, error)])
    dispatch.close()


@pytest.mark.parametrize("error", [OSError(5, "no such chip"), TypeError("no such chip")])
def test_nor_is_it_taken_for_a_worker_that_has_died(error):
    dispatch = Dispatch(ProcessTransport(Counter, 1))
    with pytest.raises(EngineError, match="no such chip"):
        dispatch.collect([dispatch.submit(count_up, CannotBeSent(error))])
    dispatch.close()


def test_nor_is_it_begun_with_a_policy_that_cannot_be_sent():
    class Local(Linear):
        """Cannot be found by another process."""

    task = replace(make_task(), agent=Agent(Local((2,), 2), "tanh"))
    with pytest.raises(ValueError, match=r"^the policy cannot be sent to workers: .*Local"):
        make_engine(task, EngineOptions(engine="workers", threads=2))
    make_engine(task, EngineOptions(engine="in_process", threads=2)).close()


def make_in_daemon(options):
    make_engine(make_task(), options).close()


@pytest.mark.spawned
def test_a_process_of_a_pool_has_threads_and_no_worker_processes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(make_in_daemon, (EngineOptions(threads=2),))
        with pytest.raises(ValueError, match=r"^engine workers needs processes, and this one may have none"):
            pool.apply(make_in_daemon, (EngineOptions(threads=2, engine="workers"),))
        with pytest.raises(ValueError, match=r"^episode_timeout needs processes"):
            pool.apply(make_in_daemon, (EngineOptions(episode_timeout=9.0),))


class CannotBeSent:
    """Something that raises this error when it is pickled."""

    def __init__(self, error):
        self._error = error

    def __reduce__(self):
        raise self._error


class CannotBeRead:
    """Something that cannot be opened where it arrives, such as a replay in shared memory."""

    def __reduce__(self):
        return refuse_to_open, ()


def refuse_to_open():
    raise OSError(24, "no descriptor is left")


def test_a_process_that_cannot_be_started_is_an_error_that_says_so(monkeypatch):
    error = BlockingIOError(11, "Resource temporarily unavailable")
    monkeypatch.setattr(workers, "ProcessWorker", Mock(side_effect=error))
    with pytest.raises(EngineError, match=r"^a worker process cannot be started: Resource temporarily unavailable$"):
        Dispatch(ProcessTransport(Counter, 1)).submit(count_up, 1)
