"""Makes the engine: threads in this process, or worker processes for simulators that are written in Python."""

from hebbes.contracts.engine import Engine
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import CHUNK_SIZES, EngineOptions, plays_in_workers, resolve_num_threads
from hebbes.execution.process_engine import ProcessEngine
from hebbes.execution.thread_engine import ThreadEngine


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
    options = EngineOptions(engine=engine, threads=threads, chunk_size=chunk_size, episode_timeout=episode_timeout)
    backend, timeout = task.environment.backend, options.episode_timeout
    size = CHUNK_SIZES[backend] if options.chunk_size is None else options.chunk_size
    count = resolve_num_threads(options.threads)
    if plays_in_workers(options.engine, backend, count, timeout):
        return ProcessEngine(task, chunk_size=size, workers=count, episode_timeout=timeout)
    return ThreadEngine(task, chunk_size=size, threads=count)
