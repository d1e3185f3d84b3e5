"""Files that are either the old one or the new one, whenever the machine stops."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SUFFIX = ".tmp"


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """An empty file to write in the context, at the end of which it takes the place of `path`, synced and of mode 0644.

    Where the context raises, it is deleted, and `path` stays as it was. What a killed process leaves behind is a hidden
    `.<name>.*.tmp` file, which nothing ever reads; `sweep` deletes it.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_SUFFIX, dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor) as file:
            yield temporary
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces `path` by a file that holds `data`; a write cut short leaves the old file as it was."""
    with replacement(path) as temporary:
        temporary.write_bytes(data)


def sync_folder(folder: Path) -> None:
    """Makes renamings in a folder themselves survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Deletes what killed writers left in a folder to which nobody else is writing."""
    for path in folder.glob(f".*{_SUFFIX}"):
        if path.is_file():
            path.unlink(missing_ok=True)
