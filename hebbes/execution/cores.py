"""Cores: pins each chunk to a core of its own, on which its policies and its simulators take turns.

EnvPool steps a chunk's simulators in a thread of its own, which waits while the policies act, as the policies wait for
it. When one of the two wakes the other, all cores are busy. Linux may then queue the one that wakes behind another
chunk's simulators, and leave it there while a core idles (docs/measurements.md has how much that costs).
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

PROC_STAT = Path("/proc/stat")
WINDOW = 1.0
"""Seconds over which the load of other programs is measured. The times in `PROC_STAT` are multiples of 0.01 s."""
LARGEST_LOAD = 0.25
"""If others keep more cores busy, nothing is pinned: a pinned chunk would share its core, and all wait for the last."""

_pinned: set[int] = set()
"""The cores to which threads of this process are pinned."""
_lock = Lock()


class Cores:
    """The cores that a program may use, for an engine with as many threads.

    Nothing is pinned for an engine with fewer threads, because two such programs would take the same cores, while other
    programs are busy, and on systems other than Linux.
    """

    def __init__(self, threads: int):
        self._available = _find_cores()
        self._may_pin = threads == len(self._available) > 1
        self._load = OthersLoad(self._available)

    @contextmanager
    def pin_thread(self) -> Iterator[None]:
        """Pins the calling thread to a core to which no other thread is pinned, if there is one."""
        core = self._take_core() if self._may_pin and self._load.measure() <= LARGEST_LOAD else None
        if core is None:
            yield
            return
        try:
            yield
        finally:
            self._give_back(core)

    def _take_core(self) -> int | None:
        try:
            if os.sched_getaffinity(0) != self._available:
                return None  # somebody has changed it
            with _lock:
                core = min(self._available - _pinned, default=None)
                if core is not None:
                    os.sched_setaffinity(0, {core})
                    _pinned.add(core)
                return core
        except OSError:  # the system forbids it, or has taken the core away
            return None

    def _give_back(self, core: int) -> None:
        try:
            if os.sched_getaffinity(0) == {core}:  # nobody has changed it
                os.sched_setaffinity(0, self._available)
        except OSError:
            pass
        finally:
            _pinned.discard(core)


def _find_cores() -> set[int]:
    """Those that the calling thread may use; none where `hebbes.environments.simulator_threads` cannot work."""
    if not hasattr(os, "sched_setaffinity") or not os.access("/proc/thread-self/comm", os.W_OK):
        return set()
    return os.sched_getaffinity(0)


class OthersLoad:
    """How many of these cores other processes keep busy."""

    def __init__(self, cores: set[int]):
        self._cores = cores
        self._start = self._read()
        self._load = float("nan")

    def measure(self) -> float:
        """The mean over the last `WINDOW` or longer. NaN before it is over, and if the system does not tell."""
        start, busy_at_start = self._start
        if time.monotonic() - start >= WINDOW:
            self._start = now, busy = self._read()
            self._load = (busy - busy_at_start) / (now - start)
        return self._load

    def _read(self) -> tuple[float, float]:
        """The time, and what these cores have done for others since the machine started, in seconds."""
        ticks, num_cores = 0, 0
        try:
            for line in PROC_STAT.read_text().splitlines():
                name, *fields = line.split()
                if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in self._cores:
                    user, nice, system, _idle, _waiting, interrupt, soft_interrupt = map(int, fields[:7])
                    ticks += user + nice + system + interrupt + soft_interrupt
                    num_cores += 1
        except (OSError, ValueError):
            return time.monotonic(), float("nan")
        if num_cores < len(self._cores):  # they have other numbers there
            return time.monotonic(), float("nan")
        return time.monotonic(), ticks / os.sysconf("SC_CLK_TCK") - time.process_time()
