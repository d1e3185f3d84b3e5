"""Makes the engine that the options name: threads, worker processes, or workers on a Ray cluster."""

from dataclasses import replace
from multiprocessing import current_process

from hebbes.contracts.engine import Engine
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import EngineOptions
from hebbes.registry.lookup import find_class

WORKERS = "workers"


def make_engine(task: Task, options: EngineOptions) -> Engine:
    """The engine that the options name, or that they leave to the task's environment; ValueError if it cannot work.

    In a process that may have no worker processes, threads step the simulators where the options leave that open.
    """
    resolved = options.resolve(task.environment.backend)
    if resolved.engine == WORKERS:
        if options.engine == WORKERS:
            check_may_start_processes("engine workers")
        elif options.episode_timeout is not None:
            check_may_start_processes("episode_timeout")
        elif current_process().daemon:
            resolved = replace(resolved, engine="in_process")
    engine = find_class("engine", resolved.engine)
    used = ("chunk_size", "threads", "episode_timeout", *engine.own_options)
    made: Engine = engine(task, **{name: getattr(resolved, name) for name in used})
    return made


def check_may_start_processes(option: str) -> None:
    """ValueError for an option that needs processes, in one that may have none."""
    if current_process().daemon:
        raise ValueError(f"{option} needs processes, and this one may have none: it is a daemon, as in a Pool")
