"""Files that grow record by record and hold whole records only, whatever the disk says."""

import os
from pathlib import Path


class AppendedFile:
    """Appends records to a file; those that a full disk refuses are kept and written with the next one."""

    def __init__(self, path: Path) -> None:
        """Goes on behind what the file holds; makes it if there is none."""
        self._file = path.open("ab", buffering=0)
        self._size, self._pending = os.fstat(self._file.fileno()).st_size, b""

    def write(self, record: bytes) -> None:
        """Appends a record; OSError where the disk refuses it."""
        self._pending += record
        self.flush()

    def flush(self) -> None:
        """Writes what was refused before; a write cut short leaves whole records."""
        try:
            written = 0
            while written < len(self._pending):
                written += self._file.write(self._pending[written:])
        except BaseException:
            self._file.truncate(self._size)
            raise
        self._size += len(self._pending)
        self._pending = b""

    def sync(self) -> None:
        """Makes the records so far survive a power cut."""
        self.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file, whatever is still to be written; calling it twice is harmless."""
        self._file.close()
