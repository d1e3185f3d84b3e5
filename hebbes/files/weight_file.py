"""What weight files of every kind share: their error, and opening them so that what lies at a path cannot cost much."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

MAX_LINE = 500


class WeightFileError(ValueError):
    """A weight file that cannot be used; one line that names the file and what is wrong with it."""


def as_path(path: str | Path) -> Path:
    """The path itself, or that of a text; TypeError for anything else, such as an open file."""
    if not isinstance(path, (str, Path)):
        raise TypeError(
            f"the path of a policy file must be a str or a pathlib.Path, got {type(path).__name__} {path!r}"
        )
    return Path(path)


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Turns whatever reading `path` raises for a bad file into a WeightFileError of one line, cut if very long."""
    try:
        yield
    except WeightFileError:
        raise
    except OSError as error:
        raise WeightFileError(f"{path}: {error.strerror or error}") from error
    except RecursionError as error:
        raise WeightFileError(f"{path}: damaged: nested too deeply") from error
    except ValueError as error:
        line = " ".join(str(error).split())
        raise WeightFileError(f"{path}: {line if len(line) <= MAX_LINE else line[:MAX_LINE] + ' ...'}") from error


@contextmanager
def opened(path: Path, max_bytes: int, advice: str) -> Iterator[BinaryIO]:
    """An ordinary file of 1 to `max_bytes` bytes, open; ValueError, with the advice where it is larger."""
    if not path.exists():
        raise ValueError("no such file")
    if not S_ISREG(path.stat().st_mode):  # opening a pipe waits, reading a device may never end
        raise ValueError("a folder; give a file in it" if path.is_dir() else "not a file")
    size = path.stat().st_size
    if size == 0:
        raise ValueError("the file is empty")
    if size > max_bytes:
        raise ValueError(f"the file has {size} bytes, more than {max_bytes}; {advice}")
    with path.open("rb") as file:
        yield file
