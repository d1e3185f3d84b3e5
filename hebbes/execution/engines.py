"""Makes the engine: threads in this process, or worker processes for simulators that are written in Python."""

from hebbes.contracts.engine import Engine
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import CHUNK_SIZES, EngineOptions, choose_engine, resolve_num_threads
from hebbes.registry.lookup import find_class


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
    backend, count = task.environment.backend, resolve_num_threads(options.threads)
    name = choose_engine(options.engine, backend, count, options.episode_timeout)
    return find_class("engine", name)(
        task,
        chunk_size=CHUNK_SIZES[backend] if options.chunk_size is None else options.chunk_size,
        threads=count,
        episode_timeout=options.episode_timeout,
    )
