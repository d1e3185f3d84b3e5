"""The options of the engine, which evaluates populations, and what follows from them.

This module imports no simulator and no compiler, because the command line imports it for its options.
"""

import os
import re
from dataclasses import dataclass, replace

from hebbes.contracts.option import check_options, option
from hebbes.registry.lookup import find_class
from hebbes.registry.tables import ENGINES

MAX_THREADS = 1024
"""A larger number is a typing error, and more than most systems can start."""


@dataclass(frozen=True)
class EngineOptions:
    """Options of the engine. `engines.make_engine` makes it."""

    engine: str = option(
        "auto",
        "auto: threads for EnvPool, worker processes for Gymnasium; with --threads 1 simulators run in this process, "
        "and a crash of one ends it; ray: workers on the nodes of a Ray cluster, which may come and go",
        choices=("auto", *ENGINES),
        changeable=True,
    )
    threads: int = option(
        -1, "threads or worker processes; -1 means all cores, those of the whole cluster on ray", changeable=True
    )
    chunk_size: int | None = option(
        None,
        "members evaluated together, approximately (default: on Gymnasium 4; on EnvPool 16 with images, 32 in worker "
        "processes or with code of yours, else threads share the members evenly, up to about 128, or 32 of large "
        "networks)",
        range=">= 1",
        changeable=True,
    )
    episode_timeout: float | None = option(
        None,
        "seconds for each episode of a chunk; if all together need more, all of them fail, and the worker process is "
        "replaced (default: no limit)",
        range="> 0",
        changeable=True,
    )
    ray_address: str = option(
        "auto",
        "HOST:PORT of the head of a Ray cluster; auto: the cluster that this machine is part of",
        needs={"engine": ("ray",)},
        changeable=True,
    )
    allow_mixed_nodes: bool = option(
        False,
        "use nodes of a Ray cluster that differ from this machine in processor or versions, so that results may depend "
        "on who does what",
        needs={"engine": ("ray",)},
        changeable=True,
    )

    def __post_init__(self) -> None:
        check_options(self)
        resolve_num_threads(self.threads)
        if not re.fullmatch(r"auto|.+:\d{1,5}", self.ray_address):
            raise ValueError(f"ray_address must be auto or HOST:PORT, got {self.ray_address!r}")
        if self.episode_timeout is not None and self.engine != "auto" and not uses_processes(self.engine):
            raise ValueError(
                f"episode_timeout needs engine=workers or ray, whose simulators can be killed, got {self.engine!r}"
            )

    def resolve(self, backend: str) -> "EngineOptions":
        """The options with the engine and the number of threads filled in, where they are left to the environment."""
        if self.engine == "ray":
            return self  # the cores are those of the cluster, which may change
        threads, engine = resolve_num_threads(self.threads), self.engine
        if engine == "auto":
            needs_workers = self.episode_timeout is not None or (backend == "gymnasium" and threads > 1)
            engine = "workers" if needs_workers else "in_process"
        return replace(self, engine=engine, threads=threads)

    @property
    def local_threads(self) -> int:
        """The number of threads or processes on this machine. With `ray`, `threads` counts those of the cluster."""
        threads = resolve_num_threads(self.threads)
        return min(threads, resolve_num_threads(-1)) if self.engine == "ray" else threads


def uses_processes(engine: str) -> bool:
    """Whether this engine of the table does its work in processes. This imports the engine with its simulators."""
    return bool(find_class("engine", engine).uses_processes)


def resolve_num_threads(threads: int) -> int:
    """The number of threads for `--threads`; -1 means all cores."""
    if threads != -1 and not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"threads must be from 1 to {MAX_THREADS}, or -1 for all cores, got {threads}")
    if threads > 0:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
