"""How much memory simulators take, measured on a few of them before a run begins.

Between simulators the cost differs by a factor of three thousand (CartPole 10 kB, a PyBullet world 30 MB), and with
bodies and options of the same one, so that no table of them would hold.
"""

import ctypes
import json
from collections.abc import Callable
from functools import cache
from math import ceil
from time import perf_counter

from hebbes.contracts.environment import BatchEnv
from hebbes.environments.spec import EnvironmentSpec, make_batch_env, spec_from_json, spec_to_json

SECONDS = 0.5
"""What making them may take, beyond the first two."""


def simulator_bytes(spec: EnvironmentSpec, num_copies: int, used: Callable[[], int], *, training: bool) -> int:
    """Memory that one of the simulators of a batch takes, its share of what the batch has included.

    Args:
        spec: the environment, with its wrappers.
        num_copies: how many the batches of a run have; so many at most are made.
        used: the bytes that this process takes now.
        training: whether to apply the training-only wrappers.

    0 where a simulator fails: what it raises is for the run to say, whose engine knows what to do about it.
    """
    return _measured(json.dumps(spec_to_json(spec)), num_copies, used, training)


@cache
def _measured(described: str, num_copies: int, used: Callable[[], int], training: bool) -> int:
    """As `simulator_bytes`, measured once for all runs of a process."""
    spec = spec_from_json(json.loads(described))
    _release_freed()
    envs: list[BatchEnv] = []
    try:
        envs.append(_started(spec, 1, training))  # the first of a process loads what all others share
        begun = perf_counter()
        envs.append(_started(spec, 1, training))
        affordable = 1 + int(SECONDS / max(perf_counter() - begun, 1e-6))
        before, count = used(), min(num_copies, affordable)
        envs.append(_started(spec, count, training))
        return ceil(max(0, used() - before) / count)
    except Exception:  # whatever a user's simulator raises
        return 0
    finally:
        for env in envs:
            env.close()


def _started(spec: EnvironmentSpec, count: int, training: bool) -> BatchEnv:
    env = make_batch_env(spec, range(count), threads=1, training=training)
    try:
        env.start(0)
    except BaseException:
        env.close()
        raise
    return env


def _release_freed() -> None:
    """Has the C library give back what is free within the process, which would hide what is taken next."""
    release = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if release is not None:
        release(0)
