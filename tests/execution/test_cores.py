import os
import subprocess
import sys
import time
from threading import Barrier, Thread

import pytest

from hebbes.execution.cores import OTHERS_LOAD, WINDOW, Cores, OthersLoad

AVAILABLE = os.sched_getaffinity(0)
pytestmark = pytest.mark.skipif(len(AVAILABLE) < 2, reason="needs two cores")


def find_cores_of_threads(cores, threads):
    """Where each of these threads may run while all of them are in the context, and where after it."""
    found, barrier = [], Barrier(threads, timeout=60)

    def run():
        with cores.take_one():
            within = os.sched_getaffinity(0)
            barrier.wait()
        found.append((within, os.sched_getaffinity(0)))

    running = [Thread(target=run) for _ in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    return found


def test_each_thread_has_a_core_of_its_own_and_all_of_them_again_afterwards():
    cores = Cores(len(AVAILABLE))
    for _ in range(2):
        found = find_cores_of_threads(cores, len(AVAILABLE))
        assert sorted(core for within, _ in found for core in within) == sorted(AVAILABLE)
        assert all(after == AVAILABLE for _, after in found)


def test_one_more_thread_than_cores_has_all_of_them():
    found = find_cores_of_threads(Cores(len(AVAILABLE)), len(AVAILABLE) + 1)
    assert sorted(map(len, (within for within, _ in found))) == [1] * len(AVAILABLE) + [len(AVAILABLE)]


def test_an_engine_with_fewer_threads_than_cores_takes_none():
    with Cores(len(AVAILABLE) - 1).take_one():
        assert os.sched_getaffinity(0) == AVAILABLE


def test_no_core_is_taken_while_another_program_is_busy():
    cores = Cores(len(AVAILABLE))
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(2 * WINDOW)
        with cores.take_one():
            assert os.sched_getaffinity(0) == AVAILABLE
    finally:
        busy.kill()
        busy.wait()


def test_what_this_process_does_is_no_load_of_others():
    nothing = OthersLoad(set())  # of no core, so that only this process's own time is left, which is taken away
    assert nothing.measure() == 0  # it is not known yet
    end = time.monotonic() + 2 * WINDOW
    while time.monotonic() < end:
        pass
    assert nothing.measure() < -OTHERS_LOAD


def test_a_system_that_does_not_tell_its_load_gives_no_cores(monkeypatch, tmp_path):
    monkeypatch.setattr("hebbes.execution.cores.STATISTICS", tmp_path / "missing")
    cores = Cores(len(AVAILABLE))
    time.sleep(WINDOW)
    with cores.take_one():
        assert os.sched_getaffinity(0) == AVAILABLE
