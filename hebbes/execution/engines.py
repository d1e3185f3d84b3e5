"""Which engine evaluates: the in-process one, or worker processes for simulators written in Python."""

import os
from math import inf

from hebbes.contracts.engine import Engine
from hebbes.execution.chunks import Task
from hebbes.execution.process_engine import WorkerEngine
from hebbes.execution.thread_engine import InProcessEngine

ENGINES = ("auto", "in_process", "workers")

CHUNK_SIZES = {"envpool": 32, "gymnasium": 4}
"""Members to a chunk where none is given: EnvPool steps a batch faster than its parts; Gymnasium does not, and small
chunks keep all workers busy."""


MAX_THREADS = 1024
"""A number beyond this is a slip, and more than most systems start."""


def num_threads(threads: int) -> int:
    """The number of threads that `--threads` asks for; -1 means all cores."""
    if threads != -1 and not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"threads must be from 1 to {MAX_THREADS}, or -1 for all cores, got {threads}")
    if threads > 0:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_episode_timeout(seconds: float | None) -> None:
    """Refuses an `--episode_timeout` that is no time; None means no limit."""
    if seconds is not None and not 0 < seconds < inf:
        raise ValueError(f"episode_timeout must be a finite number of seconds > 0, got {seconds}")


def plays_in_workers(engine: str, backend: str, count: int, episode_timeout: float | None) -> bool:
    """Whether chunks are played in processes of their own, `count` of them at most, rather than in threads."""
    holds_lock = backend == "gymnasium" and count > 1
    return engine == "workers" or (engine == "auto" and (holds_lock or episode_timeout is not None))


def make_engine(
    task: Task,
    *,
    chunk_size: int | None,
    threads: int,
    engine: str = "auto",
    episode_timeout: float | None = None,
) -> Engine:
    """The engine named; `auto` takes threads for EnvPool and worker processes for Gymnasium.

    One thread alone plays in this process, which a simulator that crashes takes with it. Where an episode may take only
    `episode_timeout` seconds, `auto` takes worker processes, which can be killed, whatever the back end and the number.
    """
    if chunk_size is None:
        chunk_size = CHUNK_SIZES[task.environment.backend]
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be >= 1, got {chunk_size}")
    check_episode_timeout(episode_timeout)
    if episode_timeout is not None and engine == "in_process":
        raise ValueError("episode_timeout needs an engine whose simulators can be killed, workers, got 'in_process'")
    count = num_threads(threads)
    if plays_in_workers(engine, task.environment.backend, count, episode_timeout):
        return WorkerEngine(task, chunk_size=chunk_size, workers=count, episode_timeout=episode_timeout)
    return InProcessEngine(task, chunk_size=chunk_size, threads=count)
