"""SharedArray: an array that jobs in other processes read where it is, instead of getting a copy.

On Linux it lies in a file without a name, in memory. Another process opens it through the descriptor of the process
that made it, so that nothing is left behind, whatever is killed. Elsewhere its numbers are sent.
"""

import mmap
import os
from math import prod
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np


class SharedArray:
    """An array of float32. Memory is taken as it fills. If it is sent to another process, that one reads the same."""

    def __init__(self, shape: tuple[int, ...]):
        if hasattr(os, "memfd_create"):
            self._descriptor = os.memfd_create("hebbes")
            finalize(self, os.close, self._descriptor)
            os.truncate(self._descriptor, 4 * prod(shape))
            self.array = np.ndarray(shape, np.float32, mmap.mmap(self._descriptor, 4 * prod(shape)))
        else:
            self.array = np.zeros(shape, np.float32)

    def __reduce__(self) -> tuple[Any, ...]:
        """How the other process gets the array."""
        if hasattr(self, "_descriptor"):
            return _open_array, (f"/proc/{os.getpid()}/fd/{self._descriptor}", self.array.shape)
        return ReceivedArray, (self.array,)


class ReceivedArray(SharedArray):
    """The array of another process, or a copy of it."""

    def __init__(self, array: np.ndarray):
        self.array = array


def _open_array(path: str, shape: tuple[int, ...]) -> SharedArray:
    with Path(path).open("rb") as file:
        memory = mmap.mmap(file.fileno(), 4 * prod(shape), access=mmap.ACCESS_READ)
    return ReceivedArray(np.ndarray(shape, np.float32, memory))
