"""SimulatorThreads: the threads of a simulator's library, which may run where the thread that plays may."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import get_native_id

_THREADS = Path("/proc/self/task")
_numbers = count()


class SimulatorThreads:
    """Threads that `find` has found; none on other systems than Linux."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._cores: set[int] = set()

    @classmethod
    @contextmanager
    def find(cls) -> Iterator["SimulatorThreads"]:
        """The threads that the calling thread starts in this context. They inherit its name and its cores."""
        found = cls()
        name_file = _THREADS / str(get_native_id()) / "comm"
        try:
            usual_name, name = name_file.read_text().strip(), f"simulators{next(_numbers) % 100_000}"
            name_file.write_text(name)
        except OSError:
            yield found
            return
        try:
            yield found
        finally:
            name_file.write_text(usual_name)
        found._cores = os.sched_getaffinity(0)
        for thread in _THREADS.iterdir():
            with suppress(OSError):  # it has ended
                if (thread / "comm").read_text().strip() == name:
                    found._ids.append(int(thread.name))

    def follow(self) -> None:
        """Lets them run where the calling thread may."""
        if not self._ids or (cores := os.sched_getaffinity(0)) == self._cores:
            return
        self._cores = cores
        for each in self._ids:
            with suppress(OSError):
                os.sched_setaffinity(each, cores)
