"""Makes the engine: threads in this process, or worker processes for simulators that are written in Python."""

import os
from math import inf

from hebbes.contracts.engine import Engine
from hebbes.execution.chunks import Task
from hebbes.execution.process_engine import ProcessEngine
from hebbes.execution.thread_engine import ThreadEngine

ENGINES = ("auto", "in_process", "workers")

CHUNK_SIZES = {"envpool": 32, "gymnasium": 4}
"""Default numbers of members in a chunk. EnvPool is faster with large batches. Gymnasium is not, and small chunks keep
all workers busy."""


MAX_THREADS = 1024
"""A larger number is a typing error, and more than most systems can start."""


def resolve_num_threads(threads: int) -> int:
    """The number of threads for `--threads`; -1 means all cores."""
    if threads != -1 and not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"threads must be from 1 to {MAX_THREADS}, or -1 for all cores, got {threads}")
    if threads > 0:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_episode_timeout(seconds: float | None) -> None:
    """Raises ValueError unless `seconds` is finite and positive, or None (no limit)."""
    if seconds is not None and not 0 < seconds < inf:
        raise ValueError(f"episode_timeout must be a finite number of seconds > 0, got {seconds}")


def plays_in_workers(engine: str, backend: str, count: int, episode_timeout: float | None) -> bool:
    """Whether chunks are evaluated in worker processes (at most `count`) instead of threads."""
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
    """The engine of this name; `auto` means threads for EnvPool and worker processes for Gymnasium.

    With `threads=1`, `auto` evaluates in this process, so a simulator that crashes ends the run. With `episode_timeout`
    (seconds), `auto` always means worker processes, because only these can be killed.
    """
    if chunk_size is None:
        chunk_size = CHUNK_SIZES[task.environment.backend]
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be >= 1, got {chunk_size}")
    check_episode_timeout(episode_timeout)
    if episode_timeout is not None and engine == "in_process":
        raise ValueError("episode_timeout needs engine=workers, whose simulators can be killed, got 'in_process'")
    count = resolve_num_threads(threads)
    if plays_in_workers(engine, task.environment.backend, count, episode_timeout):
        return ProcessEngine(task, chunk_size=chunk_size, workers=count, episode_timeout=episode_timeout)
    return ThreadEngine(task, chunk_size=chunk_size, threads=count)
