"""Cores: gives each chunk a core of its own, on which its policies and its simulators take turns.

EnvPool steps a chunk's simulators in a thread of its own, which waits while the policies act, and they wait for it.
When one wakes the other, all cores are busy. Linux may then queue it behind the simulators of another chunk, where it
stays while its own core idles (docs/measurements.md has how much that costs).
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STATISTICS = Path("/proc/stat")
WINDOW = 1.0
"""Seconds over which the load of other programs is measured. The times of the system are multiples of 0.01 s."""
OTHERS_LOAD = 0.25
"""From this many busy cores of others on, no core is kept for a chunk: it would share it, and all wait for the last."""


class Cores:
    """The cores of an engine that has a thread for each of them.

    Others, and other systems than Linux, get none: two programs with fewer threads would take the same ones. So does
    an engine while other programs are busy.
    """

    def __init__(self, threads: int):
        self._available = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
        self._free = sorted(self._available) if threads == len(self._available) > 1 else []
        self._load = OthersLoad(self._available)

    @contextmanager
    def take_one(self) -> Iterator[None]:
        """The calling thread runs on one core, and no other one in this context does."""
        try:
            core = self._free.pop(0)
        except IndexError:
            yield
            return
        try:
            if self._load.measure() < OTHERS_LOAD:
                _allow({core})
            yield
        finally:
            _allow(self._available)
            self._free.append(core)


class OthersLoad:
    """How many of these cores other processes keep busy."""

    def __init__(self, cores: set[int]):
        self._cores = cores
        self._start = self._read()
        self._load = 0.0

    def measure(self) -> float:
        """The mean over the last `WINDOW` or longer, and 0 before it is over. NaN if the system does not tell."""
        start, busy_at_start = self._start
        if time.monotonic() - start >= WINDOW:
            self._start = now, busy = self._read()
            self._load = (busy - busy_at_start) / (now - start)
        return self._load

    def _read(self) -> tuple[float, float]:
        """The time, and what these cores have done for others since the machine started, in seconds."""
        ticks = 0
        try:
            for line in STATISTICS.read_text().splitlines():
                name, *fields = line.split()
                if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in self._cores:
                    user, nice, system, _idle, _waiting, interrupt, soft_interrupt = map(int, fields[:7])
                    ticks += user + nice + system + interrupt + soft_interrupt
        except (OSError, ValueError):
            return time.monotonic(), float("inf")
        return time.monotonic(), ticks / os.sysconf("SC_CLK_TCK") - time.process_time()


def _allow(cores: set[int]) -> None:
    """Lets the calling thread run on these cores, unless they were meanwhile taken from the process."""
    with suppress(OSError):
        os.sched_setaffinity(0, cores)
