import os
import subprocess
import sys
import time
from threading import Barrier, Thread

import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.execution import cores as module
from hebbes.execution.chunks import Task
from hebbes.execution.cores import LARGEST_LOAD, PROC_STAT, Cores, OthersLoad
from hebbes.execution.episode import Agent
from hebbes.execution.in_process import InProcess
from hebbes.policies.linear import Linear
from hebbes.strategies.core.populations import GaussianPopulation
from tests.execution.scripted_tasks import make_context

AVAILABLE = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
NUM_CORES = len(AVAILABLE)
pytestmark = pytest.mark.skipif(NUM_CORES < 2, reason="needs Linux and two cores")


@pytest.fixture
def quiet(monkeypatch):
    """A machine on which no other program is busy."""
    monkeypatch.setattr(OthersLoad, "measure", lambda load: 0.0)


def find_cores_of_threads(pins):
    """Where each of the threads, one for each of `pins`, may run while all are in their context, and afterwards."""
    found, barrier = [], Barrier(len(pins), timeout=60)

    def run(cores):
        with cores.pin_thread():
            within = os.sched_getaffinity(0)
            barrier.wait()
        found.append((within, os.sched_getaffinity(0)))

    threads = [Thread(target=run, args=(cores,)) for cores in pins]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return found


def write_load(path, seconds_of_each):
    """A file as `PROC_STAT`: seconds that each of the available cores has worked, idle time and steal beside."""
    ticks = {
        core: round(seconds * os.sysconf("SC_CLK_TCK"))
        for core, seconds in zip(AVAILABLE, seconds_of_each, strict=True)
    }
    lines = [f"cpu{core} {count} 0 0 123456 7 0 0 99 0 0\n" for core, count in ticks.items()]
    path.write_text("cpu  9999999 0 0 0 0 0 0 0 0 0\n" + "".join(lines) + "intr 5 5\n")


@pytest.mark.usefixtures("quiet")
def test_each_thread_is_pinned_to_a_core_of_its_own_and_free_again_afterwards():
    cores = Cores(NUM_CORES)
    for pins in ([cores] * NUM_CORES, [cores] * (NUM_CORES - 1) + [Cores(NUM_CORES)]):  # a second engine
        found = find_cores_of_threads(pins)
        assert sorted(core for within, _ in found for core in within) == sorted(AVAILABLE)
        assert all(after == AVAILABLE for _, after in found)


@pytest.mark.usefixtures("quiet")
def test_one_more_thread_than_cores_is_not_pinned():
    found = find_cores_of_threads([Cores(NUM_CORES)] * (NUM_CORES + 1))
    assert sorted(len(within) for within, _ in found) == [1] * NUM_CORES + [NUM_CORES]


@pytest.mark.usefixtures("quiet")
def test_an_engine_with_fewer_threads_than_cores_pins_nothing():
    assert find_cores_of_threads([Cores(NUM_CORES - 1)]) == [(AVAILABLE, AVAILABLE)]


@pytest.mark.usefixtures("quiet")
def test_an_affinity_that_somebody_sets_is_kept():
    cores, core = Cores(NUM_CORES), {max(AVAILABLE)}

    def run():
        with cores.pin_thread():
            os.sched_setaffinity(0, core)  # while it is pinned to another one
        found.append(os.sched_getaffinity(0))
        with cores.pin_thread():
            found.append(os.sched_getaffinity(0))

    found = []
    thread = Thread(target=run)
    thread.start()
    thread.join()
    assert found == [core, core]


@pytest.mark.usefixtures("quiet")
def test_an_exception_ends_the_pinning_and_is_passed_on_as_it_is():
    for cores in (Cores(NUM_CORES), Cores(1)):
        with pytest.raises(ValueError, match="theirs") as raised, cores.pin_thread():
            raise ValueError("theirs")
        assert raised.value.__context__ is None
        assert os.sched_getaffinity(0) == AVAILABLE


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("backend", "threads", "num_cores"),
    [("envpool", NUM_CORES, 1), ("envpool", NUM_CORES - 1, NUM_CORES), ("gymnasium", NUM_CORES, NUM_CORES)],
)
def test_an_engine_pins_chunks_of_envpool_if_it_has_all_cores(monkeypatch, backend, threads, num_cores):
    found, act = [], Linear.act

    def act_and_tell(policy, *arguments):
        found.append(len(os.sched_getaffinity(0)))
        return act(policy, *arguments)

    monkeypatch.setattr(Linear, "act", act_and_tell)
    task = Task(Agent(Linear((4,), 2), "argmax"), EnvironmentSpec("CartPole-v1", backend), 11)
    engine = InProcess(task, chunk_size=4, threads=threads)
    engine.evaluate(GaussianPopulation(np.zeros(8, np.float32), 0.5, 3, 4, 4 * NUM_CORES), make_context())
    engine.close()
    assert set(found) == {num_cores}


def test_nothing_is_pinned_while_another_program_is_busy():
    cores = Cores(NUM_CORES)
    assert find_cores_of_threads([cores]) == [(AVAILABLE, AVAILABLE)]  # it is not known yet
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        time.sleep(2 * module.WINDOW)
        found = find_cores_of_threads([cores])
        busy.kill()
    assert found == [(AVAILABLE, AVAILABLE)]


def test_the_load_is_that_of_the_programs_on_these_cores_without_this_one(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "PROC_STAT", tmp_path / "stat")
    monkeypatch.setattr(module.time, "monotonic", iter([100, 102, 102, 103, 103]).__next__)
    monkeypatch.setattr(module.time, "process_time", iter([50.0, 51.5, 52.5]).__next__)
    write_load(tmp_path / "stat", [1000] * NUM_CORES)
    load = OthersLoad(AVAILABLE)
    write_load(tmp_path / "stat", [1001] + [1000] * (NUM_CORES - 2) + [1001.5])  # 2.5 s, of which 1.5 are our own
    assert load.measure() == pytest.approx(0.5)
    write_load(tmp_path / "stat", [1001] + [1000] * (NUM_CORES - 2) + [1002.5])
    assert load.measure() == pytest.approx(0.0)


@pytest.mark.parametrize("text", [None, "cpu0 1 2\n", "cpu99999 1 2 3 4 5 6 7 8 9 10\n", "gibberish\n"])
def test_a_system_that_does_not_tell_its_load_pins_nothing(monkeypatch, tmp_path, text):
    monkeypatch.setattr(module, "PROC_STAT", tmp_path / "stat")
    monkeypatch.setattr(module, "WINDOW", 0.0)
    if text is not None:
        (tmp_path / "stat").write_text(text)
    assert np.isnan(Cores(NUM_CORES)._load.measure())
    assert find_cores_of_threads([Cores(NUM_CORES)]) == [(AVAILABLE, AVAILABLE)]


def test_the_systems_own_figures_are_read():
    assert PROC_STAT.exists()
    assert OthersLoad(AVAILABLE)._read()[1] > 0
    assert LARGEST_LOAD < 1  # one busy program is enough
