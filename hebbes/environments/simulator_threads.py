"""SimulatorThreads: the threads that a simulator's library starts, which may run where the thread that plays may."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import get_native_id

_THREADS = Path("/proc/self/task")
_pool_numbers = count()


class SimulatorThreads:
    """Threads that `record_started` has recorded; none on systems other than Linux."""

    def __init__(self) -> None:
        self._name = b""
        self._ids: list[int] = []
        self._cores: set[int] = set()

    @contextmanager
    def record_started(self) -> Iterator[None]:
        """Records the threads that the calling thread starts in this context. They inherit its name and its cores."""
        name_file = _find_name_file(get_native_id())
        self._name = b"simulators%d" % (next(_pool_numbers) % 100_000)
        try:
            usual_name = name_file.read_bytes().strip()
            name_file.write_bytes(self._name)
        except OSError:
            yield
            return
        try:
            yield
        finally:
            with suppress(OSError):
                name_file.write_bytes(usual_name)
        with suppress(OSError):
            self._cores = os.sched_getaffinity(0)
            self._ids = [number for each in _THREADS.iterdir() if self._is_ours(number := int(each.name))]

    def follow_caller(self) -> None:
        """Lets them run where the calling thread may."""
        if not self._ids or (cores := os.sched_getaffinity(0)) == self._cores:
            return
        self._cores = cores
        for number in self._ids:
            if self._is_ours(number):
                with suppress(OSError):
                    os.sched_setaffinity(number, cores)

    def _is_ours(self, number: int) -> bool:
        """Whether the thread of this number is one of those; it may have ended, and another one have its number."""
        with suppress(OSError):
            return _find_name_file(number).read_bytes().strip() == self._name
        return False


def _find_name_file(number: int) -> Path:
    """The file with the name of a thread of this process."""
    return _THREADS / str(number) / "comm"
