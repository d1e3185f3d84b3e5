"""What runs on the nodes of a Ray cluster: the workers, and short tasks that say what a node is like."""

import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_features
from threadpoolctl import threadpool_limits

from hebbes.execution.provenance import find_conditions
from hebbes.execution.stopped_process import is_stopped
from hebbes.execution.transport import Host, Loss, call_function

CRASH = "Fatal Python error"
"""What Python's fault handler writes to the log of a worker that a signal such as SIGSEGV ends. SIGKILL leaves none."""

STOPPED = "worker was stopped from outside"
"""What is written to the log of a worker that is killed because it was stopped."""

LOG_BYTES = 1 << 16
"""The end of a log, which is read for these lines. They are its last ones, apart from a crash's traceback."""


class RayHost:
    """A worker: an actor with one CPU, one thread and a host of its own."""

    def __init__(self, make_host: Callable[[], Host]):
        faulthandler.enable(file=2, all_threads=False)
        threadpool_limits(limits=1, user_api="blas")  # as in the training process; policies of users may need it
        self._host = make_host()

    def describe(self) -> tuple[int, Path]:
        """The process id, and the file that standard error goes to. It can do calls as soon as it has answered."""
        return os.getpid(), _find_log("self")

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `call_function` returns."""
        return call_function(self._host, function, arguments)


def find_loss(log: Path | None) -> Loss:
    """Why a worker is gone, from its log, if that is known. A kill and a call of `os._exit` leave no trace there."""
    for line in [] if log is None else reversed(_read_end(log)):
        if line.startswith(CRASH):
            return Loss(f"worker died: {line}", "call")
        if line == STOPPED:
            return Loss(STOPPED, "kill")
    return Loss("worker died or was killed", "unknown")


def _read_end(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_BYTES))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []


def end_if_stopped(process_id: int, log: Path) -> None:
    """Kills a worker of this node if it has been stopped. The log tells it from a later process with its number."""
    if is_stopped(process_id) and _find_log(str(process_id)) == log:
        if log.is_file():  # not a pipe
            with log.open("a") as file:
                file.write(f"\n{STOPPED}\n")
        os.kill(process_id, signal.SIGKILL)


def _find_log(process: str) -> Path:
    return Path(f"/proc/{process}/fd/2").readlink()


def describe_node(modules: tuple[str, ...]) -> dict[str, str]:
    """What a run's bits depend on, on the machine that this runs on: conditions, CPU features, sources of the code.

    `modules` are those of the user that the run names.
    """
    features = {f"cpu {name}": str(has) for name, has in get_host_cpu_features().items()}
    sources = {"hebbes": _hash_files(Path(__file__).parents[1]), **{name: _hash_module(name) for name in modules}}
    return {**find_conditions(), **features, **sources}


def _hash_module(name: str) -> str:
    """A hash of the outermost package that the module is in, or of its file if it is in none."""
    import_module(name)
    parts = name.split(".")
    parents = (sys.modules[".".join(parts[: count + 1])].__file__ for count in range(len(parts)))
    path = Path(next(filter(None, parents), __file__))  # a package without a file has no code of its own
    return _hash_files(path.parent if path.name == "__init__.py" else path)


def _hash_files(root: Path) -> str:
    """A hash of all Python files of a package, or of one file."""
    found = sha256()
    for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
        found.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:12]
