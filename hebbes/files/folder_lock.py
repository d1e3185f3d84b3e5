"""Locks that keep two processes from working in one folder."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hebbes.contracts.errors import say

PATIENCE = 0.1  # seconds. Who only looks whether a folder is locked locks it for less than a millisecond.


def lock_folder(folder: Path) -> int:
    """Locks a folder against other processes until this one ends; returns the descriptor that holds the lock.

    ValueError if another process has locked it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if not _try_to_lock(descriptor, fcntl.LOCK_EX):
            time.sleep(PATIENCE)
            if not _try_to_lock(descriptor, fcntl.LOCK_EX):
                os.close(descriptor)
                raise ValueError(f"folder {folder} is in use by another process")
    except OSError as error:  # some network file systems have no locks
        say(f"{folder} cannot be locked ({error.strerror}); see that no other process uses it")
    return descriptor


@contextmanager
def wait_for_lock(place: Path) -> Iterator[None]:
    """Keeps others that wait for this file or folder out until the end of the context; OSError if it has no locks."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether a process has locked a folder, as far as the file system can tell."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return not _try_to_lock(descriptor, fcntl.LOCK_SH)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _try_to_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
