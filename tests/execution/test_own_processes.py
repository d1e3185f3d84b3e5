"""Simulators with processes of their own, in worker processes."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.execution.workers import Workers
from hebbes.policies.linear import Linear
from tests.execution.scripted_tasks import POPULATION, make_context
from tests.waiting import wait_until

ENV_ID = "OwnProcesses-v0"


class OwnProcesses(gymnasium.Env):
    """Starts a program and a process of multiprocessing, and ends them as one usually does. It can never be stepped."""

    observation_space, action_space = Box(-1, 1, (2,), np.float32), Box(-1, 1, (2,), np.float32)

    def __init__(self, folder):
        self._program = subprocess.Popen(["sleep", "600"])
        self._process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
        self._process.start()
        for pid in (self._program.pid, self._process.pid):
            (Path(folder) / str(pid)).touch()

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        raise RuntimeError("the program has ended")

    def close(self):
        self._program.terminate()
        self._program.wait()
        self._process.terminate()
        self._process.join()


if ENV_ID not in gymnasium.registry:
    gymnasium.register(ENV_ID, entry_point=f"{__name__}:OwnProcesses")


def make_engine(folder):
    spec = EnvironmentSpec(ENV_ID, "gymnasium", {"folder": str(folder)}, imports=(__name__,))
    return Workers(Task(Agent(Linear((2,), 2), "tanh"), spec, 11), chunk_size=11, threads=2)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def find_running(folder):
    """Those of the processes named in the folder that have not ended."""
    return [pid for pid in (int(path.name) for path in folder.iterdir()) if is_running(pid)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_programs_of_simulators_end_with_them_and_leave_signals_of_the_terminal_to_the_run(tmp_path):
    engine = make_engine(tmp_path)
    try:
        assert np.isnan(engine.evaluate(POPULATION, make_context()).returns).all()
        assert len(list(tmp_path.iterdir())) > 2 * len(POPULATION)  # others were made for the second episode
        assert os.getpgid(0) not in {os.getpgid(pid) for pid in find_running(tmp_path)}
        for number in (signal.SIGTERM, signal.SIGKILL):  # the worker leaves the first to the run
            before = [worker.process.pid for worker in engine._transport.workers]
            for pid in before:
                os.kill(pid, number)
            assert np.isnan(engine.evaluate(POPULATION, make_context()).returns).all()
            after = [worker.process.pid for worker in engine._transport.workers]
            assert (after == before) == (number is signal.SIGTERM)
    finally:
        engine.close()
    assert wait_until(lambda: not find_running(tmp_path))
