"""Worker processes that are stopped from outside (SIGSTOP)."""

import os
import signal

import numpy as np
import pytest

from hebbes.execution.dispatch import Dispatch
from hebbes.execution.transport import Loss
from hebbes.execution.workers import ProcessTransport
from tests.execution.toy_transport import Counter, count_up


def stop_once(host, file):
    """Stops its process, unless the file is there."""
    if not file.exists():
        file.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return "done"


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_process_that_is_stopped_is_replaced_even_if_there_is_no_other(num_workers, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hebbes.execution.dispatch.LOOK_SECONDS", 1.0)
    dispatch = Dispatch(ProcessTransport(Counter, num_workers))
    tickets = [dispatch.submit(stop_once, tmp_path / str(number)) for number in range(num_workers)]
    assert [answer for _, answer in dispatch.collect_each(tickets)] == ["done"] * num_workers
    dispatch.close()
    assert capsys.readouterr().err == "a worker was replaced: worker was stopped from outside\n" * num_workers


@pytest.mark.spawned  # it waits for its child
def test_a_process_counts_as_killed_if_its_end_is_seen_only_later_than_that_of_its_pipes(monkeypatch):
    transport = ProcessTransport(Counter, 1)
    worker, wait, looks = transport.start_worker(), os.waitpid, []
    assert worker.receive() == (None, None)

    def wait_late(*arguments):
        looks.append(arguments)
        return (0, 0) if len(looks) < 4 else wait(*arguments)

    monkeypatch.setattr(os, "waitpid", wait_late)
    os.kill(worker.process.pid, signal.SIGKILL)
    assert worker.receive() == (None, Loss("worker was killed from outside", "kill"))
    assert len(looks) >= 4
    transport.close()


@pytest.mark.spawned  # it waits for its child
def test_a_process_that_is_stopped_while_idle_is_replaced(capsys):
    """Its pipe cannot hold the next call."""
    transport = ProcessTransport(Counter, 1)
    dispatch = Dispatch(transport)
    assert dispatch.collect([dispatch.submit(count_up, 1)])[1] == (1, 1)
    (worker,) = transport.workers
    os.kill(worker.process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED | os.WNOWAIT)
    assert dispatch.collect([dispatch.submit(count_up, np.zeros(1_000_000))])[1][1] == 1
    dispatch.close()
    assert capsys.readouterr().err == "a worker was replaced: worker was stopped from outside\n"
