"""What runs on the nodes of a Ray cluster: the workers, and short tasks that say what a node is like."""

import faulthandler
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_features
from threadpoolctl import threadpool_limits

from hebbes.execution.provenance import find_conditions
from hebbes.execution.transport import Host, call_function

CRASH = "Fatal Python error"
"""What Python's fault handler writes to the log of a worker that a signal such as SIGSEGV ends. SIGKILL leaves none."""


class RayHost:
    """A worker: an actor with one CPU, one thread and a host of its own."""

    def __init__(self, make_host: Callable[[], Host]):
        faulthandler.enable(file=2, all_threads=False)
        threadpool_limits(limits=1, user_api="blas")  # as in the training process; policies of users may need it
        self._host = make_host()

    def find_log(self) -> str:
        """The file that this worker's standard error goes to. It can do calls as soon as it has answered."""
        return str(Path("/proc/self/fd/2").readlink())

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `call_function` returns."""
        return call_function(self._host, function, arguments)


def find_crash(log: str) -> str:
    """The line that says why a worker crashed, from its log; empty if it was killed from outside."""
    try:
        lines = Path(log).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in reversed(lines) if line.startswith(CRASH)), "")


def describe_node(modules: tuple[str, ...]) -> dict[str, str]:
    """What a run's bits depend on, on the machine that this runs on: conditions, CPU features, sources of the code.

    `modules` are those of the user that the run names.
    """
    features = {f"cpu {name}": str(has) for name, has in get_host_cpu_features().items()}
    sources = {"hebbes": _hash_files(Path(__file__).parents[1]), **{name: _hash_module(name) for name in modules}}
    return {**find_conditions(), **features, **sources}


def _hash_module(name: str) -> str:
    path = Path(import_module(name).__file__ or __file__)  # a package without a file has no code of its own
    return _hash_files(path.parent if path.name == "__init__.py" else path)


def _hash_files(root: Path) -> str:
    """A hash of all Python files of a package, or of one file."""
    found = sha256()
    for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
        found.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:12]
