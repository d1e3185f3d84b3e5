"""Where the time of the training loop goes: the own time of each part, in microseconds per env step of a chunk.

    python -m benchmarks.loop_profile --environment HalfCheetah-v5 --generations 5

Takes the flags of `train_static.py`. Each part is timed without the parts that it calls. Waiting for EnvPool is wall
time and holds the simulator; all else is processor time of the thread that plays the chunk. The table is the median of
the generations after the first. Timing itself adds about half a microsecond to each part. EnvPool environments only.
"""

import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from statistics import median
from typing import Any

from hebbes.contracts.trainer import Progress
from hebbes.environments.envpool_env import EnvPoolEnv
from hebbes.environments.stepping_guard import SteppingGuard
from hebbes.execution import chunks, episode
from hebbes.execution.observation_moments import MomentTally
from hebbes.execution.tallies import Tallies
from hebbes.options.command_line import parse_config
from hebbes.policies import base, layers
from hebbes.policies.kernels import convolution, linear
from hebbes.programs.exit_status import report_errors_in_one_line
from hebbes.registry.lookup import find_class
from hebbes.registry.tables import WRAPPERS
from hebbes.training.prepare import prepare

PARTS = [
    (chunks.ChunkEvaluator, "evaluate", "chunk: weights, join"),
    (chunks, "run_episode", "episode loop"),
    (MomentTally, "add", "moments of observations"),
    (episode._LiveMembers, "compute_outputs", "policy: calls, other activations"),
    (base, "normalize_observations", "policy: inputs"),
    (linear, "dense_kernel", "policy: dense layers"),
    (linear, "linear_kernel", "policy: matrices"),
    (convolution, "conv_pool_kernel", "policy: convolutions"),
    (layers, "check_weights", "policy: checks"),
    (episode._LiveMembers, "record_env_step", "returns and checks"),
    (episode._LiveMembers, "drop_rows", "ended members"),
    (Tallies, "record", "saturated actions"),
    (EnvPoolEnv, "start", "starts"),
    (EnvPoolEnv, "step", "arrays of EnvPool"),
    (SteppingGuard, "check_ids", "guard"),
    (SteppingGuard, "check_actions", "guard"),
    (SteppingGuard, "end_episodes", "guard"),
]


class OwnTimes(threading.local):
    """The own processor time and wall time of each part in this thread, in seconds."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._running: list[str] = []
        self._since = (0.0, 0.0)

    def enter(self, part: str) -> None:
        """From here on, time belongs to this part."""
        self._credit()
        self._running.append(part)

    def leave(self) -> None:
        """Time belongs to the caller of the part again."""
        self._credit()
        self._running.pop()

    def _credit(self) -> None:
        now = time.thread_time(), time.perf_counter()
        if self._running:
            for kind in (0, 1):
                self.times[self._running[-1]][kind] += now[kind] - self._since[kind]
        self._since = now


OWN = OwnTimes()


def timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
    """The function, whose own time is credited to the part."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        OWN.enter(part)
        try:
            return function(*args, **kwargs)
        finally:
            OWN.leave()

    return call


class TimedPool:
    """EnvPool's pool. Its calls are parts of their own."""

    def __init__(self, pool: Any):
        self._send, self._reset = timed(pool._send, "EnvPool: send"), pool._reset
        self._recv = timed(pool._recv, "EnvPool: receive")


def install_timers(profiles: list[dict[str, list[float]]]) -> None:
    """Times the parts from now on. Each chunk that has been played appends its own times."""
    for owner, name, part in PARTS:
        setattr(owner, name, timed(getattr(owner, name), part))
    for name in WRAPPERS:
        wrapper = find_class("wrapper", name)
        if "step" in vars(wrapper):
            wrapper.step = timed(wrapper.step, f"wrapper {name}")
        if "transform" in vars(wrapper):
            wrapper.transform = timed(wrapper.transform, f"wrapper {name}")
    evaluate, build = chunks.ChunkEvaluator.evaluate, EnvPoolEnv._build

    def evaluate_and_append(*args: Any) -> Any:
        OWN.times.clear()
        result = evaluate(*args)
        profiles.append({part: [*both] for part, both in OWN.times.items()})
        return result

    def build_timed(env: EnvPoolEnv, seeds: Any) -> None:
        build(env, seeds)
        env._pool = TimedPool(env._pool)

    setattr(chunks.ChunkEvaluator, "evaluate", evaluate_and_append)  # noqa: B010  # mypy forbids the assignment
    setattr(EnvPoolEnv, "_build", build_timed)  # noqa: B010


def main() -> None:
    """Prints a table of parts, the slowest first."""
    profiles: list[dict[str, list[float]]] = []
    tables: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--generations", "5", *sys.argv[1:], "--folder", folder, "--eval_every", "1000000"]
        with report_errors_in_one_line():
            (run,) = prepare(parse_config("static", flags, __doc__))
        install_timers(profiles)
        for generation in range(run.trainer.num_units or 5):
            profiles.clear()
            cpu, wall = time.process_time(), time.perf_counter()
            env_steps = run.trainer.advance(Progress(generation), run.engine).env_steps
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            members = len(run.trainer.strategy.ask(generation)) / len(profiles)  # type: ignore[attr-defined]
            steps = env_steps / members
            table = {"(generation, wall time)": wall / steps, "(generation, processor time)": cpu / steps}
            for part in {part for profile in profiles for part in profile}:
                waits = part == "EnvPool: receive"
                table[part] = sum(profile[part][waits] for profile in profiles if part in profile) / steps
            tables.append(table)
        run.engine.close()
    medians = {part: median(table.get(part, 0.0) for table in tables[1:] or tables) for part in tables[-1]}
    for part, seconds in sorted(medians.items(), key=lambda item: -item[1]):
        print(f"{part:32} {1e6 * seconds:8.1f}")


if __name__ == "__main__":
    main()
