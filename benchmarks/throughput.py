"""Env steps per second of the whole training loop and of bare stepping of the same simulator, measured alternately.

    python -m benchmarks.throughput --environment HalfCheetah-v5 --policy mlp --hidden_sizes 64 64 --json

The loop is that of `train_static.py`, with all its flags: sampling, policy, stepping, wrappers, statistics, update.
Bare stepping replays actions recorded from the same policies. It steps every sub-environment in every env step. Resets
at the start are not measured. That of an ended episode is part of an env step. It is done with one pool of all
sub-environments and with one pool per chunk, both with EnvPool's low-level calls. The faster one counts. The values are
medians over the turns. Only EnvPool environments are supported.
"""

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.contracts.strategy import Strategy
from hebbes.contracts.trainer import Progress
from hebbes.environments.envpool_env import EnvPoolEnv
from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.chunk_rule import count_env_threads
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import resolve_num_threads
from hebbes.execution.episode import run_episode
from hebbes.options.command_line import parse_config
from hebbes.programs.exit_status import report_errors_in_one_line
from hebbes.registry.lookup import find_class
from hebbes.training.evolution import Evolution
from hebbes.training.prepare import prepare
from hebbes.training.run_state import Run
from hebbes.wrappers.base import BatchWrapper

TURNS = 5
RECORDED_STEPS = 1000
"""Env steps per member that are recorded and replayed without `--max_episode_steps`."""


class Recorder(BatchWrapper):
    """Records the actions that reach the simulator. A finished sub-environment repeats its last action."""

    def __init__(self, env: BatchEnv):
        super().__init__(env)
        self.actions: list[np.ndarray] = []

    def step(self, actions: np.ndarray, active: np.ndarray) -> EnvStep:
        """Records the actions and steps."""
        row = self.actions[-1].copy() if self.actions else np.zeros((self.num_envs, *actions.shape[1:]), actions.dtype)
        row[active] = actions
        self.actions.append(row)
        return super().step(actions, active)


def make_pool_env(task: Task, num_envs: int, threads: int) -> EnvPoolEnv:
    """The environment without wrappers."""
    spec = task.environment
    return EnvPoolEnv(spec.environment, [1] * num_envs, spec.env_kwargs, threads=threads)


def find_strategy(run: Run) -> Strategy:
    """The strategy of the run's trainer."""
    assert isinstance(run.trainer, Evolution)
    return run.trainer.strategy


def record_actions(run: Run, generation: int) -> np.ndarray:
    """The actions, of shape (env steps, members, ...), that the members of the next population take."""
    task, population, (_, buffers) = run.task, find_strategy(run).ask(generation), run.trainer.policy
    weights = population.weights(range(len(population)))
    recorder = Recorder(make_pool_env(task, len(weights), 1))
    env: BatchEnv = recorder
    for wrapper in task.environment.wrappers:
        env = find_class("wrapper", wrapper.name)(env, **wrapper.kwargs)
    rngs = [np.random.default_rng(0)] * len(weights)
    steps = run.config.training.max_episode_steps or RECORDED_STEPS
    run_episode(task.agent, env, weights, 0, rngs, buffers=buffers, max_episode_steps=steps)
    env.close()
    return np.stack(recorder.actions)


class BareStepping:
    """Pools that replay recorded actions, each in its own thread."""

    def __init__(self, task: Task, chunks: Sequence[range], threads: int):
        self._chunks, self._executor = chunks, ThreadPoolExecutor(len(chunks))
        env_threads = count_env_threads(threads, len(chunks))
        self._envs = [make_pool_env(task, len(chunk), env_threads) for chunk in chunks]

    def measure_speed(self, actions: np.ndarray) -> float:
        """Env steps per second of one replay of actions of shape (env steps, members, ...) from an episode's start."""
        shares = [np.ascontiguousarray(actions[:, chunk.start : chunk.stop]) for chunk in self._chunks]
        for env in self._envs:
            env.start(0)
        started = time.perf_counter()
        list(self._executor.map(self._replay, self._envs, shares))
        return actions.shape[0] * actions.shape[1] / (time.perf_counter() - started)

    @staticmethod
    def _replay(env: EnvPoolEnv, actions: np.ndarray) -> None:
        ids = np.arange(env.num_envs, dtype=np.int32)
        dtype = env._guard._action_dtype
        pool = env._pool
        for row in actions.astype(dtype):
            pool._send([ids, ids, row])
            pool._recv()


def measure(run: Run) -> dict[str, float]:
    """Medians over the turns. The first turn compiles kernels and fills caches, so it is not counted."""
    threads = resolve_num_threads(run.config.engine.threads)
    members = range(len(find_strategy(run).ask(0)))
    assert isinstance(run.engine, ChunkEngine)
    layouts = [[members], run.engine.cut_into_chunks(members)]
    bare = [BareStepping(run.task, layout, threads) for layout in layouts]
    loops, bares = [], []
    for turn in range(TURNS + 1):
        actions = record_actions(run, turn)
        started = time.perf_counter()
        env_steps = run.trainer.advance(Progress(turn), run.engine).env_steps
        loops.append(env_steps / (time.perf_counter() - started))
        bares.append([stepping.measure_speed(actions) for stepping in bare])
    fastest = max(median(column[1:]) for column in zip(*bares, strict=True))
    loop = median(loops[1:])
    return {"env_steps_per_second": loop, "bare_env_steps_per_second": fastest, "ratio": loop / fastest}


def main() -> None:
    """Takes the flags of `train_static.py`, or with `--hebbian` those of `train_hebbian.py`, and `--json`."""
    arguments = [argument for argument in sys.argv[1:] if argument not in ("--json", "--hebbian")]
    trainer = "hebbian" if "--hebbian" in sys.argv else "static"
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--folder", folder, "--eval_every", "1000000", "--generations", "1000000", *arguments]
        with report_errors_in_one_line():
            (run,) = prepare(parse_config(trainer, flags, __doc__))
        results = {
            "environment": run.config.environment.id,
            "threads": resolve_num_threads(run.config.engine.threads),
            **measure(run),
        }
        run.engine.close()
    if "--json" in sys.argv:
        print(json.dumps(results))
    else:
        print(*(f"{name:26} {value}" for name, value in results.items()), sep="\n")


if __name__ == "__main__":
    main()
