"""Opening weight files of every kind safely, and the error that all of them raise."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from hebbes.contracts.errors import join_lines

MAX_MESSAGE_LENGTH = 500

POLICY_SUFFIX = ".dat"
"""How the name of a policy file ends."""


class WeightFileError(ValueError):
    """A weight file that cannot be used. The message is one line that names the file and the reason."""


def as_path(path: str | Path) -> Path:
    """The path as a `Path`. TypeError for anything but a text or a path, ValueError for an empty text."""
    if path == "":
        raise ValueError("the path of a policy file must not be empty")
    if not isinstance(path, (str, Path)):
        raise TypeError(
            f"the path of a policy file must be a str or a pathlib.Path, got {type(path).__name__} {path!r}"
        )
    return Path(path)


@contextmanager
def wrap_file_errors(path: Path) -> Iterator[None]:
    """Turns every error that reading a bad file raises into a WeightFileError of one line, cut if very long."""
    try:
        yield
    except WeightFileError:
        raise
    except OSError as error:
        raise WeightFileError(f"{path}: {error.strerror or error}") from error
    except RecursionError as error:
        raise WeightFileError(f"{path}: damaged: nested too deeply") from error
    except ValueError as error:
        line = join_lines(error)
        short = line if len(line) <= MAX_MESSAGE_LENGTH else line[:MAX_MESSAGE_LENGTH] + " ..."
        raise WeightFileError(f"{path}: {short}") from error


def open_regular_file(path: Path, max_bytes: int, advice: str) -> BufferedReader:
    """Opens a regular file of 1 to `max_bytes` bytes. Raises ValueError for others, with the advice if it is larger."""
    if not path.exists():
        raise ValueError("no such file")
    if not path.is_file():  # opening a pipe would wait, and reading a device may never end
        raise ValueError("a folder; give a file in it" if path.is_dir() else "not a file")
    size = path.stat().st_size
    if size == 0:
        raise ValueError("the file is empty")
    if size > max_bytes:
        raise ValueError(f"the file has {size} bytes, more than {max_bytes}; {advice}")
    return path.open("rb")
