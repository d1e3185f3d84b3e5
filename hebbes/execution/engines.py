"""Makes the engine that the options name: threads, worker processes, or workers on a Ray cluster."""

from hebbes.contracts.engine import Engine
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import EngineOptions
from hebbes.registry.lookup import find_class


def make_engine(task: Task, options: EngineOptions) -> Engine:
    """The engine that the options name, or that they leave to the task's environment."""
    resolved = options.resolve(task.environment.backend)
    engine = find_class("engine", resolved.engine)
    used = ("chunk_size", "threads", "episode_timeout", *engine.own_options)
    made: Engine = engine(task, **{name: getattr(resolved, name) for name in used})
    return made
