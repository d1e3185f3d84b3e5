"""The memory of simulators is measured, on ones that take a known amount."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.training.simulator_memory import measure_simulator_bytes
from tests.python_process import run_python

NUMBERS = 20_000
"""In an observation. The memory must be large in comparison with what else the process allocates."""


class Heavy(gymnasium.Env):
    """Takes this many megabytes from its reset on."""

    observation_space = Box(-1.0, 1.0, (NUMBERS,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float32)
    alive = 0

    def __init__(self, megabytes):
        self._megabytes = megabytes
        Heavy.alive += 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._kept = np.ones(int(self._megabytes * 1e6), np.uint8)
        return np.zeros(NUMBERS, np.float32), {}

    def close(self):
        Heavy.alive -= 1


gymnasium.register("Heavy-v0", entry_point=Heavy)


def measure_heavy(megabytes, num_frames=0):
    wrappers = (PartSpec("frame_stack", {"num_frames": num_frames}),) if num_frames else ()
    spec = EnvironmentSpec("Heavy-v0", "gymnasium", {"megabytes": megabytes}, wrappers=wrappers)
    found = measure_simulator_bytes(spec, 4, training=True)
    assert Heavy.alive == 0
    return found


def measure_elsewhere(arguments):
    """In a process of its own: what other tests free while simulators are measured would hide them."""
    code = f"from tests.training.test_simulator_memory import measure_heavy; print(measure_heavy({arguments}))"
    done = run_python("-c", code)
    return int(done.stdout)


@pytest.mark.parametrize("megabytes", [40.0, 100.0])
def test_a_simulator_takes_what_it_keeps(megabytes):
    assert measure_elsewhere(f"{megabytes}") == pytest.approx(megabytes * 1e6, rel=0.2)


def test_what_wrappers_keep_of_a_simulator_is_counted():
    assert measure_elsewhere("1.0, num_frames=250") > 16e6  # frames of 80 kB each


class Fragile(gymnasium.Env):
    """The seventh environment of this class cannot be reset."""

    observation_space = action_space = Box(-1, 1, (1,), np.float32)
    resets = 0

    def reset(self, *, seed=None, options=None):
        type(self).resets += 1
        if type(self).resets > 6:
            raise RuntimeError("no more of these")
        return np.zeros(1, np.float32), {}


def test_what_a_simulator_raises_is_left_to_the_run():
    gymnasium.register("Fragile-v0", entry_point=Fragile)
    spec = EnvironmentSpec("Fragile-v0", "gymnasium")
    assert measure_simulator_bytes(spec, 60, training=True) == 0
