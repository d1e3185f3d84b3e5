"""Env steps per second of training on more cores than this machine has, whose simulators sleep instead of computing.

    python -m benchmarks.many_cores --threads 16 --microseconds 78 --environment HalfCheetah-v5 --max_episode_steps 300

A thread of a simulator's pool sleeps for so many microseconds for each env step, longer if the pools have more threads
than there are cores, and returns the first observations of the episode again. All else is real: Python and its lock,
policies, wrappers, statistics, update. So it shows what threads lose when they wait for Python's lock, as long as the
policies need no more cores than there are. The ratio compares the speed with that of simulators that never wait. It
takes the flags of `train_static.py` too. The environment must be on EnvPool, and its episodes must not end early.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np

from hebbes.contracts.trainer import Progress
from hebbes.environments.envpool_env import EnvPoolEnv
from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.chunk_rule import count_env_threads
from hebbes.options.command_line import parse_config
from hebbes.programs.exit_status import report_errors_in_one_line
from hebbes.training.evolution import Evolution
from hebbes.training.prepare import prepare

GENERATIONS = 5
SEND_SECONDS, RECV_SECONDS = 10e-6, 15e-6
"""What EnvPool's calls take while they hold Python's lock."""


class SleepingPool:
    """A pool of EnvPool whose env steps sleep."""

    def __init__(self, pool: Any, num_threads: int, seconds: float):
        self._pool, self._num_threads, self._seconds = pool, num_threads, seconds
        self._state: Sequence[np.ndarray] = ()
        self._num_sent, self._end = 0, 0.0

    def _reset(self, ids: np.ndarray) -> None:
        self._pool._reset(ids)
        self._num_sent = 0

    def _send(self, arrays: Sequence[np.ndarray]) -> None:
        _hold_lock(SEND_SECONDS)
        self._num_sent = len(arrays[0])
        self._end = time.perf_counter() + -(-self._num_sent // self._num_threads) * self._seconds

    def _recv(self) -> Sequence[np.ndarray]:
        if not self._num_sent:
            self._state = self._pool._recv()
            return self._state
        time.sleep(max(0.0, self._end - time.perf_counter()))
        _hold_lock(RECV_SECONDS)
        return [array[: self._num_sent].copy() if array.ndim else array for array in self._state]


def _hold_lock(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class SleepingEnv(EnvPoolEnv):
    """An environment of EnvPool whose env steps sleep."""

    seconds = 0.0
    """For an env step of a simulator."""

    def _build(self, seeds: Sequence[int]) -> None:
        super()._build(seeds)
        self._pool = SleepingPool(self._pool, self._config["num_threads"], self.seconds)


def main() -> None:
    """Prints the speed, and its ratio to that of simulators that never wait."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, required=True, help="threads, and cores")
    parser.add_argument("--microseconds", type=float, required=True, help="of an env step of one simulator")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder, report_errors_in_one_line():
        speed = measure(arguments.threads, arguments.microseconds, [*flags, "--folder", folder])
    most = arguments.threads / arguments.microseconds * 1e6
    results = {"env_steps_per_second": speed, "without_waiting": most, "ratio": speed / most}
    if arguments.json:
        print(json.dumps(results))
        return
    for name, value in results.items():
        print(f"{name:<24}{value:>12,.2f}")


def measure(threads: int, microseconds: float, flags: list[str]) -> float:
    """Env steps per second, the median over generations."""
    own = {"threads": threads, "engine": "in_process", "eval_every": 1_000_000, "generations": 1_000_000}
    flags = [*flags, *(f"--{name}={value}" for name, value in own.items())]
    with patch("hebbes.environments.envpool_env.EnvPoolEnv", SleepingEnv):
        (run,) = prepare(parse_config("static", flags, __doc__))
        assert isinstance(run.engine, ChunkEngine) and isinstance(run.trainer, Evolution)
        num_chunks = len(run.engine.cut_into_chunks(range(len(run.trainer.strategy.ask(0)))))
        used = min(num_chunks, threads) * count_env_threads(threads, num_chunks)
        SleepingEnv.seconds = microseconds / 1e6 * max(1, used / threads)
        speeds = []
        for generation in range(GENERATIONS):
            started = time.perf_counter()
            env_steps = run.trainer.advance(Progress(generation), run.engine).env_steps
            speeds.append(env_steps / (time.perf_counter() - started))
        run.close()
    return median(speeds[1:])


if __name__ == "__main__":
    main()
