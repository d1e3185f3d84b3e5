import os
from pathlib import Path
from threading import Thread, get_native_id

import numpy as np
import pytest

from hebbes.environments.envpool_env import EnvPoolEnv
from hebbes.environments.simulator_threads import SimulatorThreads

AVAILABLE = os.sched_getaffinity(0)


def call_on(cores, function, *arguments):
    """What the function returns in a new thread that runs on these cores."""
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
    return {int(each.name): (each / "comm").read_text().strip() for each in Path("/proc/self/task").iterdir()}


@pytest.mark.skipif(len(AVAILABLE) < 2, reason="needs two cores")
def test_simulators_run_on_the_cores_of_the_thread_that_plays():
    earlier = read_names()
    first, second = sorted(AVAILABLE)[:2]
    env = call_on({first}, lambda: EnvPoolEnv("HalfCheetah-v5", [1, 2], {}, threads=1))
    for episode, cores in enumerate(({first}, {second}, AVAILABLE, {second})):
        call_on(cores, env.start, episode)
        threads = [each for each, name in read_names().items() if each not in earlier and name.startswith("simulators")]
        assert threads
        assert all(os.sched_getaffinity(each) == cores for each in threads)
        env.step(np.zeros((2, 6), np.float32), np.arange(2))
    env.close()


@pytest.mark.skipif(len(AVAILABLE) < 2, reason="needs two cores")
def test_simulators_that_another_thread_makes_meanwhile_are_left_alone():
    earlier, other = read_names(), EnvPoolEnv("HalfCheetah-v5", [1, 2], {}, threads=1)
    with SimulatorThreads.find() as found:
        call_on(AVAILABLE, other.start, 0)
    call_on({min(AVAILABLE)}, found.follow)
    threads = [each for each, name in read_names().items() if each not in earlier and name.startswith("simulators")]
    assert threads
    assert all(os.sched_getaffinity(each) == AVAILABLE for each in threads)
    assert read_names()[get_native_id()] == earlier[get_native_id()]
    other.close()
