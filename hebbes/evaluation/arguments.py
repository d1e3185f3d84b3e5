"""Checks of what a caller gives to the Python interface, and of what other people's code raises in it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hebbes.contracts.engine import EngineError, StartError
from hebbes.contracts.errors import describe_error, join_lines

GUARD = '`if __name__ == "__main__":`'
"""What keeps worker processes, which import the main script, from running it once more."""
IMPORT_HELP = "packages to import first; files whose policy, wrappers or environment are code of yours need it"
MAX_EPISODES = 1_000_000
"""Far more than any statistics need. It keeps a typing error from filling the memory."""


def check_imports(imports: Sequence[str]) -> tuple[str, ...]:
    """The names of the packages; ValueError for a single text, whose letters would be taken for names."""
    if not isinstance(imports, list | tuple | set) or not all(isinstance(each, str) for each in imports):
        raise ValueError(f"imports must be a list of names of packages, such as ['my_envs'], got {imports!r}")
    return tuple(imports)


@contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Turns what other people's code raises while a file is played into a ValueError of one line."""
    try:
        yield
    except EngineError as error:
        line = str(error).partition("\n")[0]
        raise ValueError(f"{path}: {line}{advise_guard(error)}") from error
    except ValueError as error:
        line = join_lines(error)
        if line == str(error):
            raise
        raise ValueError(line) from error
    except Exception as error:
        raise ValueError(f"{path}: {describe_error(error)}") from error


def advise_guard(error: EngineError) -> str:
    """What may help against this error of an engine, to be added to it; empty if a script's guard does not."""
    advice = f"; worker processes import the main script, so that it needs {GUARD}, or threads=1"
    return advice if isinstance(error, StartError) else ""
