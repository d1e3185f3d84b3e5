"""The base of loggers: a dataclass whose further fields are the logger's own options."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hebbes.contracts.option import check_options


@dataclass(eq=False)
class RunLogger:
    """A logger of one run, see `hebbes.contracts.logger.Logger`.

    A subclass is a dataclass too. Its fields with defaults are its options, declared with `option()`, and it has a
    method `write`. What it opens, it opens in its own `__post_init__`, after that of this class.
    """

    switch: ClassVar[str] = ""
    """Help text of a flag with the logger's name that turns the logger on. Empty: there is no such flag."""

    folder: Path
    """The run's folder. It exists."""
    units: int
    """Number of units, such as generations, before the first row to come. It is 0 for a new run."""

    def __post_init__(self) -> None:
        check_options(self)

    @classmethod
    def check_installed(cls) -> None:
        """Raises ValueError, which says what to install, if a package is missing that the logger needs."""

    def close(self) -> None:
        """Frees what the logger holds."""
