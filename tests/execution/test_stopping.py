"""Engines that are interrupted, closed while they are busy, or left behind by a parent that was killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from hebbes.contracts.engine import EngineError
from hebbes.execution import in_process
from hebbes.execution.chunks import ChunkEvaluator
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.episode import AbandonedError
from hebbes.execution.in_process import InProcess, ThreadTransport
from hebbes.execution.workers import Workers
from tests.execution.scripted_tasks import POPULATION, make_context, make_task
from tests.python_process import ROOT
from tests.scripted import ScriptedGymnasiumEnv

SCRIPT = """
from hebbes.execution.in_process import InProcess
from hebbes.execution.workers import Workers
from tests.execution.scripted_tasks import POPULATION, make_context, make_task

if __name__ == "__main__":
"""


class Interrupt(Exception):
    """Raised by the signal handler."""


@contextmanager
def interrupt_after(seconds):
    def handler(number, frame):
        raise Interrupt

    previous = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with pytest.raises(Interrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def run_script(folder, lines):
    """Starts Python on a file that ends with `lines`. Its output comes through a pipe."""
    path = folder / "script.py"
    path.write_text(SCRIPT + "".join(f"    {line}\n" for line in lines))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, path], cwd=ROOT, env=environment, **pipes)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def has_ended(pid, within):
    deadline = time.monotonic() + within
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("holds_lock", "evaluate"),
    [
        (True, "engine.evaluate(POPULATION, make_context())"),
        (False, "threading.Thread(target=engine.evaluate, args=(POPULATION, make_context())).start()"),
    ],
)
def test_a_stuck_worker_heeds_no_signal_and_ends_with_its_parent(holds_lock, evaluate, tmp_path):
    script = f"engine = Workers(make_task(hang_at=2, hang_holds_lock={holds_lock}), chunk_size=30, threads=1)"
    parent = run_script(tmp_path, ["import threading", script, evaluate])
    worker = int(parent.stdout.readline().split()[-1])
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(worker, number)
        time.sleep(0.2)
        assert is_running(worker)
        parent.kill()
        parent.wait()
        assert has_ended(worker, within=5)
    finally:
        if is_running(worker):
            os.kill(worker, signal.SIGKILL)
        parent.kill()
        parent.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_engines_that_nobody_closed_do_not_hold_up_the_exit(tmp_path):
    program = run_script(
        tmp_path,
        [
            "import threading",
            "engine = Workers(make_task(), chunk_size=4, threads=1)",
            "engine.evaluate(POPULATION, make_context())",
            "print(engine._transport.workers[0].process.pid, flush=True)",
            "stuck = InProcess(make_task(hang_at=2), chunk_size=30, threads=1)",
            "threading.Thread(target=stuck.evaluate, args=(POPULATION, make_context()), daemon=True).start()",
            "input()",
        ],
    )
    worker, hanging = program.stdout.readline(), program.stdout.readline()
    assert hanging.startswith("hanging in process")
    printed, _ = program.communicate("go on\n", timeout=300)
    assert (program.returncode, printed) == (0, "")
    assert has_ended(int(worker), within=5)


@pytest.mark.slow
def test_busy_workers_are_ended_soon_after_an_interrupt():
    engine = Workers(make_task(hang_at=2), chunk_size=4, threads=2)
    with interrupt_after(1.5):
        engine.evaluate(POPULATION, make_context())
    assert not engine._transport.workers  # the interrupt ended them
    engine.close()

    transport = engine._transport
    processes = [transport.start_worker().process for _ in range(2)]
    for worker in transport.workers:
        worker.send(0, ChunkEvaluator.evaluate, (POPULATION, range(21), make_context(), 1, 21))
    started = time.monotonic()
    engine.close()
    assert time.monotonic() - started < 30  # they are killed: what they do takes for ever
    assert not any(process.is_alive() for process in processes)


def test_running_chunks_stop_at_their_next_env_step_when_the_engine_is_closed(monkeypatch):
    monkeypatch.setattr(in_process, "STOP_SECONDS", 100.0)
    before = set(threading.enumerate())
    engine = InProcess(make_task(truncate_at=10**9), chunk_size=4, threads=2)
    started = time.monotonic()
    with interrupt_after(0.3):
        engine.evaluate(POPULATION, make_context())
    engine.close()
    assert time.monotonic() - started < 50  # otherwise it would wait for twice as long
    assert set(threading.enumerate()) <= before


def test_the_simulators_of_a_chunk_that_is_stopped_are_freed(monkeypatch):
    closed = []
    monkeypatch.setattr(ScriptedGymnasiumEnv, "close", lambda env: closed.append(env))
    evaluator = ChunkEvaluator(make_task())
    evaluator.abandon()
    with pytest.raises(AbandonedError):
        evaluator.evaluate(POPULATION, range(3), make_context())
    assert len(closed) == 3


def test_a_simulator_stuck_in_an_env_step_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(in_process, "STOP_SECONDS", 0.3)
    engine = InProcess(make_task(hang_at=2), chunk_size=4, threads=2)
    started = time.monotonic()
    with interrupt_after(0.3):
        engine.evaluate(POPULATION, make_context())
    engine.close()
    assert time.monotonic() - started < 30  # the env step takes for ever


def test_calls_that_have_not_begun_never_will_after_an_error(monkeypatch):
    monkeypatch.setattr(in_process, "STOP_SECONDS", 0.1)
    dispatch, begun, raised = Dispatch(ThreadTransport(partial(ChunkEvaluator, make_task()), 1)), [], threading.Event()

    def first_fails(host, number):
        begun.append(number)
        assert number == 0 or raised.wait(10)
        raise ValueError(f"job {number}")

    tickets = [dispatch.submit(first_fails, number) for number in range(5)]
    with pytest.raises(EngineError, match="ValueError: job 0"):
        dispatch.collect(tickets)
    raised.set()
    time.sleep(0.2)
    assert len(begun) <= 2
