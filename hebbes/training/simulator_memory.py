"""Measures the memory that simulators take, on a few of them, before a run begins.

Simulators differ by a factor of three thousand (CartPole 10 kB, a PyBullet world 30 MB), and the same one differs with
its morphology and options. So no table could list them.
"""

import json
from functools import cache
from math import ceil
from time import perf_counter

from hebbes.contracts.environment import BatchEnv
from hebbes.environments.environment_spec import EnvironmentSpec, spec_from_json, spec_to_json
from hebbes.environments.freed_memory import return_free_memory
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.training.free_memory import measure_private_memory

SECONDS = 0.5
"""Largest time to spend on making simulators, after the first two."""


def measure_simulator_bytes(spec: EnvironmentSpec, num_envs: int, *, training: bool) -> int:
    """Bytes that one simulator in a batch takes, including its share of what the batch itself takes.

    Args:
        spec: the environment, with its wrappers.
        num_envs: size of a run's batches; at most two more than this are made.
        training: whether to apply the training-only wrappers.

    0 if a simulator fails: the run will report the error, because its engine knows what to do about it.
    """
    return _measure_once(json.dumps(spec_to_json(spec)), num_envs, training)


@cache
def _measure_once(described: str, num_envs: int, training: bool) -> int:
    """`measure_simulator_bytes`, measured only once per process for each description."""
    spec = spec_from_json(json.loads(described))
    return_free_memory()  # else the next allocations would reuse it and not be seen
    envs: list[BatchEnv] = []
    try:
        envs.append(_start_env(spec, 1, training))  # the first in a process loads what all others share
        begun = perf_counter()
        envs.append(_start_env(spec, 1, training))
        affordable = 1 + int(SECONDS / max(perf_counter() - begun, 1e-6))
        before, count = measure_private_memory(), min(num_envs, affordable)
        envs.append(_start_env(spec, count, training))
        return ceil(max(0, measure_private_memory() - before) / count)
    except Exception:  # whatever a user's simulator raises
        return 0
    finally:
        for env in envs:
            env.close()


def _start_env(spec: EnvironmentSpec, count: int, training: bool) -> BatchEnv:
    env = make_batch_env(spec, range(count), threads=1, training=training)
    try:
        env.start(0)
    except BaseException:
        env.close()
        raise
    return env
