"""njit: Numba's, for all kernels, with a cache that programs may fill at the same time.

Numba keeps the machine code of each signature of a function in a numbered file, and the numbers in an index. Its own
cache takes the next number, writes the index and then the file. So two programs that begin together could leave the
code of one signature under the number of another, such as that of another learning rule, and every later program would
execute it. Here each file has a name of its own, and the index is written last. What is lost is compiled again.

Numba also compiles again only if the file of a function has changed. Ours contain functions of other files, so they are
compiled again if any of these has. Both hold for all functions with `cache=True` in a process that imports this module.

Without any folder for its files Numba refuses `cache=True`. Then they are in a temporary one, until the process ends.
"""

import os
import pickle
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any
from uuid import uuid4

from numba import njit
from numba.core import caching, config

__all__ = ["njit"]

_PACKAGE = Path(__file__).parent
_INCLUDED = (
    _PACKAGE / "simd.py",
    _PACKAGE / "contracts" / "environment.py",
    _PACKAGE / "policies" / "activations.py",
    _PACKAGE / "policies" / "learning_rules.py",
)
_SOURCES = [each.stat() for each in (*sorted(_PACKAGE.glob("*/kernels/*.py")), *_INCLUDED)]
SOURCES_STAMP = tuple((each.st_mtime_ns, each.st_size) for each in _SOURCES)
"""Changes with the source of any kernel, of `simd.py`, or of a constant in a kernel."""


class CacheFile(caching.IndexDataCacheFile):
    """The index and the files of a function."""

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any):
        super().__init__(cache_path, filename_base, (source_stamp, SOURCES_STAMP))
        self._files = f"{escape(filename_base)}.*.nbc"

    def save(self, key: Any, data: Any) -> None:
        """Saves the code of the signature `key`, unless the disk is full."""
        with suppress(OSError):
            names = self._load_index()
            if not names:
                self._remove_files()
            names[key] = names.get(key) or self._data_name(uuid4().int)
            self._save_data(names[key], data)
            self._save_index(names)

    def load(self, key: Any) -> Any:
        """The code of the signature `key`; None if it is not there, or cannot be read."""
        with _pass_over_unreadable_files():
            return super().load(key)
        return None

    def _load_index(self) -> Any:
        with _pass_over_unreadable_files():
            return super()._load_index()
        return {}

    def _remove_files(self) -> None:
        """Removes the files of another version. Those of a program that saves at this moment are made again."""
        for path in Path(self._cache_path).glob(self._files):
            path.unlink(missing_ok=True)


@contextmanager
def _pass_over_unreadable_files() -> Iterator[None]:
    """A file may be cut short after a power failure, or be another user's."""
    with suppress(EOFError, pickle.UnpicklingError, OSError):
        yield


def _make_folder_if_needed() -> "tempfile.TemporaryDirectory[str] | None":
    """A temporary folder for this process and those that it starts, if Numba finds none; it is deleted with the result.

    It is new and nobody else's, because what it holds is executed.
    """
    try:
        caching.FunctionCache(_make_folder_if_needed)
    except RuntimeError:  # neither the package's folders nor the user's can be written
        folder = tempfile.TemporaryDirectory(prefix="hebbes-")
        os.environ["NUMBA_CACHE_DIR"] = folder.name
        config.reload_config()
        line = "no folder for compiled code can be written: it is compiled anew; NUMBA_CACHE_DIR can name one"
        print(line, file=sys.stderr)
        return folder
    return None


caching.IndexDataCacheFile = CacheFile  # type: ignore[misc]  # its only user looks it up by this name
_folder = _make_folder_if_needed()
