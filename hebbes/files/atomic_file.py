"""Atomic writes: a file has either its old or its new content, whenever the machine stops."""

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_SUFFIX = ".tmp"


def check_place(name: str, path: Path, suffixes: Sequence[str] = ()) -> None:
    """ValueError that begins with the option's name if no file can be written to the path. Writes nothing.

    With `suffixes`, the path must have one of these.
    """
    if suffixes and path.suffix not in suffixes:
        raise ValueError(f"{name} must name a {' or '.join(suffixes)} file, got {str(path)!r}")
    if not path.parent.is_dir():
        raise ValueError(f"{name} {path}: the folder {path.parent} does not exist")
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise ValueError(f"{name} {path}: no file can be written there")
    if _is_special(path):
        raise ValueError(f"{name} {path}: not a regular file")


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yields an empty temporary file. At the end of the context it replaces `path`, synced and with mode 0644.

    If the context raises, the temporary file is deleted and `path` stays as it was. A killed process leaves a hidden
    file `.<name>.*.tmp`. Nothing ever reads it, and `delete_leftovers` deletes it. OSError for a device or a pipe.
    """
    if _is_special(path):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_SUFFIX, dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor) as file:
            _lock(descriptor)
            yield temporary
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _is_special(path: Path) -> bool:
    """Whether the path names a device, a pipe or a socket, which a rename would remove."""
    return path.exists() and not (path.is_file() or path.is_dir())


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces `path` with a file that holds `data`. A write cut short leaves the old file as it was."""
    with replace_file(path) as temporary:
        temporary.write_bytes(data)


def sync_folder(folder: Path) -> None:
    """Syncs a folder, so that files renamed in it keep their new names after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Locks a temporary file as long as it is open. False if another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def delete_leftovers(folder: Path) -> None:
    """Deletes the temporary files of killed processes, and none that another process is writing."""
    for path in folder.glob(f".*{_SUFFIX}"):
        with suppress(OSError):  # another user's, for example
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    if _lock(file.fileno()):
                        path.unlink()
