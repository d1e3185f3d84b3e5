import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread, get_native_id

import numpy as np
import pytest

from hebbes.environments import simulator_threads
from hebbes.environments.envpool_env import EnvPoolEnv
from hebbes.environments.simulator_threads import SimulatorThreads

AVAILABLE = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
pytestmark = pytest.mark.skipif(len(AVAILABLE) < 2, reason="needs Linux and two cores")


def call_on(cores, function, *arguments):
    """Calls the function in a new thread that runs on these cores, and returns what it returns."""
    found = []

    def call():
        os.sched_setaffinity(0, cores)
        found.append(function(*arguments))

    thread = Thread(target=call)
    thread.start()
    thread.join()
    return found[0]


def read_names():
    """Number -> name of each thread of this process."""
    names = {}
    for each in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            names[int(each.name)] = (each / "comm").read_text().strip()
    return names


def find_new_simulators(earlier):
    """Numbers of the simulators' threads that were not among `earlier`."""
    found = [each for each, name in read_names().items() if each not in earlier and name.startswith("simulators")]
    assert found
    return found


def test_simulators_run_on_the_cores_of_the_thread_that_plays():
    earlier = read_names()
    first, second = sorted(AVAILABLE)[:2]
    env = EnvPoolEnv("HalfCheetah-v5", [1, 2], {}, threads=1)
    for episode, cores in enumerate(({first}, {second}, AVAILABLE, {second})):
        call_on(cores, env.start, episode)
        assert all(os.sched_getaffinity(each) == cores for each in find_new_simulators(earlier))
        env.step(np.zeros((2, 6), np.float32), np.arange(2))
    env.close()


def test_a_pool_has_as_many_threads_as_it_is_given():
    numbers = []
    for threads in (1, 2):
        earlier, env = read_names(), EnvPoolEnv("HalfCheetah-v5", [1, 2, 3], {}, threads=threads)
        env.start(0)
        numbers.append(len(find_new_simulators(earlier)))
        env.close()
    assert numbers[1] == numbers[0] + 1


def test_simulators_that_another_thread_makes_meanwhile_are_left_alone():
    earlier, other, threads = read_names(), EnvPoolEnv("HalfCheetah-v5", [1, 2], {}, threads=1), SimulatorThreads()
    with ThreadPoolExecutor(1) as another:
        another.submit(os.getpid).result()  # it begins before the context, whose name it would inherit
        with threads.record_started():
            another.submit(other.start, 0).result()
    call_on({min(AVAILABLE)}, threads.follow_caller)
    assert all(os.sched_getaffinity(each) == AVAILABLE for each in find_new_simulators(earlier))
    assert read_names()[get_native_id()] == earlier[get_native_id()]
    other.close()


def test_a_thread_that_has_the_number_of_an_ended_one_is_left_alone():
    threads = SimulatorThreads()
    with threads.record_started():
        pass
    threads._ids = [get_native_id()]
    call_on({min(AVAILABLE)}, threads.follow_caller)
    assert os.sched_getaffinity(0) == AVAILABLE


def test_without_names_of_threads_simulators_are_made_and_left_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(simulator_threads, "_THREADS", tmp_path)
    env = EnvPoolEnv("HalfCheetah-v5", [1, 2], {}, threads=1)
    for episode, cores in enumerate((AVAILABLE, {min(AVAILABLE)})):
        assert call_on(cores, env.start, episode).shape == (2, 17)
    env.close()
