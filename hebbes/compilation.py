"""njit: Numba's, for all kernels, with a cache that programs may fill at the same time.

Numba keeps the machine code of each signature of a function in a numbered file, and the numbers in an index. Its own
cache takes a free number, writes the index and then the file, without a lock. Two programs that begin together could
leave the code of one signature under the number of another, such as that of another learning rule, and every later
program would execute it. Here a lock is held, and the index is written last, so that it never names another's file.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import caching

__all__ = ["njit"]


class LockedCacheFile(caching.IndexDataCacheFile):
    """The index and the numbered files of a function."""

    def save(self, key: Any, data: Any) -> None:
        """Saves the code of the signature `key`."""
        with self._lock():
            names = self._load_index()
            free = (name for name in map(self._data_name, count(1)) if name not in names.values())
            names[key] = names.get(key) or next(free)
            self._save_data(names[key], data)
            self._save_index(names)

    def load(self, key: Any) -> Any:
        """The code of the signature `key`; None if it is not there."""
        with self._lock():
            return super().load(key)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Waits until no other program saves or loads code of kernels in the folder."""
        try:
            descriptor = os.open(Path(self._cache_path) / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # of a folder that is not there yet, or in which nobody can save
            yield
            return
        try:
            with suppress(OSError):  # of a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


caching.IndexDataCacheFile = LockedCacheFile  # type: ignore[misc]  # its only user looks it up by this name
