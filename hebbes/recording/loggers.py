"""The loggers of a run, of which none can stop it: a logger that fails costs one line and its own rows."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hebbes.contracts.errors import describe_error, say
from hebbes.contracts.logger import Logger
from hebbes.contracts.option import check_value, list_options
from hebbes.recording.base import RunLogger
from hebbes.registry.users_classes import convert_errors, make_instance


@dataclass(frozen=True)
class LoggerChoice:
    """A logger that a run asks for."""

    name: str
    """A name in the table of loggers, or "package.module:Class"."""
    logger_class: type[Any]
    """The class that the name stands for."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values by field name."""

    def check(self) -> None:
        """ValueError, before anything is made, for an option that the logger lacks or refuses, or a missing package."""
        known = {each.name: each for each in list_options(self.logger_class)}
        with convert_errors("loggers", self.name):
            for name, value in self.options.items():
                if name not in known:
                    raise ValueError(f"it has no option {name!r}; it takes {', '.join(known) or 'none'}")
                check_value(self.logger_class, known[name], value)
            if issubclass(self.logger_class, RunLogger):
                self.logger_class.check_installed()


@dataclass
class _Running:
    """A logger that still takes rows."""

    name: str
    logger: Logger
    problem: str = ""
    """The last reason for which it refused a row."""

    def close_quietly(self) -> None:
        """Closes a logger whose failure is reported elsewhere."""
        with suppress(Exception):
            self.logger.close()


class Loggers:
    """Writes each row to every logger.

    A logger that raises OSError keeps the row and gets the next one too. A line is printed when the reason is new. A
    logger that raises anything else is closed after one line, and the others go on.
    """

    def __init__(
        self, choices: Iterable[LoggerChoice], folder: Path, units: int, report: Callable[[str], None] = say
    ) -> None:
        """Makes the loggers of the run in `folder`. They continue after that many `units`. `report` prints a line.

        A user's own logger that cannot be made costs one line. Raises OSError if one of ours cannot make its file.
        """
        self._report, self._has_lost_rows = report, False
        self._running: list[_Running] = []
        try:
            for each in choices:
                arguments = {"folder": folder, "units": units, **each.options}
                try:
                    made = make_instance("loggers", each.name, each.logger_class, **arguments)
                except ValueError as error:  # of a user's own class
                    self._has_lost_rows = True
                    self._report(f"training goes on without logger {each.name!r}: {error}")
                    continue
                self._running.append(_Running(each.name, made))
        except BaseException:
            for running in self._running:
                running.close_quietly()
            raise

    def write(self, row: Mapping[str, float]) -> None:
        """Gives each logger its own copy of a row. A logger's failure is reported, never raised."""
        name, count = next(iter(row.items()))
        for running in list(self._running):
            try:
                running.logger.write(dict(row))
            except OSError as error:
                self._report_refusal(running, f"{name} {int(count)}", describe_error(error))
            except Exception as error:  # whatever a user's logger raises
                self._drop(running, f"{name} {int(count)}", describe_error(error))

    def close(self) -> bool:
        """Closes the loggers and returns whether none has failed. A second call does nothing, with the same result."""
        while self._running:
            running = self._running.pop(0)
            try:
                running.logger.close()
            except Exception as error:  # whatever a user's logger raises
                self._has_lost_rows = True
                say(f"logger {running.name!r} has lost rows: {describe_error(error)}")
        return not self._has_lost_rows

    def _report_refusal(self, running: _Running, unit: str, reason: str) -> None:
        if reason != running.problem:
            again = "it tries again with each row"
            self._report(f"{unit}: not written by logger {running.name!r} ({reason}); {again}")
        running.problem = reason

    def _drop(self, running: _Running, unit: str, reason: str) -> None:
        self._has_lost_rows = True
        self._running.remove(running)
        self._report(f"{unit}: training goes on without logger {running.name!r} ({reason})")
        running.close_quietly()
