"""Files that grow record by record and hold only whole records, even after failed writes."""

import os
from pathlib import Path


class AppendedFile:
    """Appends records to a file. Records that a full disk refuses are kept and written with the next one."""

    def __init__(self, path: Path) -> None:
        """Appends to what the file already holds. Makes the file if it does not exist."""
        self._file = path.open("ab", buffering=0)
        self._size, self._pending = os.fstat(self._file.fileno()).st_size, b""

    def write(self, record: bytes) -> None:
        """Appends a record. Raises OSError if the disk refuses it."""
        self._pending += record
        self.flush()

    def flush(self) -> None:
        """Writes the records that were refused before. A write cut short leaves only whole records."""
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
        """Forces all records so far onto the disk, so that they survive a power cut."""
        self.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file without writing pending records. Calling it twice is harmless."""
        self._file.close()
