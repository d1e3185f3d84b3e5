"""The loggers of a run, of which none can stop it: a logger that fails costs one line and its own rows."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hebbes.contracts.errors import convert_foreign_exits, describe_error, say
from hebbes.contracts.logger import Logger
from hebbes.contracts.notices import Notice, Notices
from hebbes.contracts.option import check_value, list_options
from hebbes.environments.part_spec import PartSpec
from hebbes.recording.base import RunLogger
from hebbes.registry.lookup import find_class
from hebbes.registry.users_classes import convert_errors, make_instance


def check_logger(spec: PartSpec) -> None:
    """ValueError, before anything is made, for an option that a logger lacks or refuses, or a missing package."""
    found = find_class("logger", spec.name)
    known = {each.name: each for each in list_options(found)}
    with convert_errors("logger", spec.name):
        for name, value in spec.kwargs.items():
            if name not in known:
                raise ValueError(f"it has no option {name!r}; it takes {', '.join(known) or 'none'}")
            check_value(found, known[name], value)
        if issubclass(found, RunLogger):
            found.check_installed()


@dataclass
class _Running:
    """A logger that still takes rows."""

    name: str
    logger: Logger
    notices: Notices = field(default_factory=Notices)

    @convert_foreign_exits()
    def write(self, row: Mapping[str, float]) -> None:
        """Gives the logger a row."""
        self.logger.write(row)

    @convert_foreign_exits()
    def close(self) -> None:
        """Closes the logger."""
        self.logger.close()

    def close_quietly(self) -> None:
        """Closes a logger whose failure is reported elsewhere."""
        with suppress(Exception):
            self.close()


class Loggers:
    """Writes each row to every logger.

    A logger that raises OSError keeps the row and gets the next one too. A line is printed, twice at most for errors of
    one kind, whose texts may differ. A logger that raises anything else, or calls `sys.exit`, is closed after one line,
    and the others go on.
    """

    def __init__(
        self, specs: Iterable[PartSpec], folder: Path, units: int, report: Callable[[str], None] = say
    ) -> None:
        """Makes the loggers of the run in `folder`. They continue after that many `units`. `report` prints a line.

        A logger that raises ValueError when it is made, as every error of a user's own does, costs one line. Raises
        OSError if one of ours cannot make its file.
        """
        self._print = report
        self.losses: list[str] = []
        """Which rows are lost, a line for each logger that has failed."""
        self._running: list[_Running] = []
        try:
            for each in specs:
                arguments = {"folder": folder, "units": units, **each.kwargs}
                try:
                    made = make_instance("logger", each.name, find_class("logger", each.name), **arguments)
                except ValueError as error:  # of a user's own class, or of a server
                    self.losses.append(f"all rows of logger {each.name!r}")
                    self._print(f"training goes on without logger {each.name!r}: {error}")
                    continue
                self._running.append(_Running(each.name, made))
        except BaseException:
            for running in self._running:
                running.close_quietly()
            raise

    def write(self, row: Mapping[str, float]) -> None:
        """Gives each logger its own copy of a row. A logger's failure is reported, never raised."""
        name, count = next(iter(row.items()))
        unit = f"{name} {int(count)}"
        for running in list(self._running):
            try:
                running.write(dict(row))
                running.notices.select([])
            except OSError as error:
                self._report_refusal(running, unit, error)
            except Exception as error:  # whatever a user's logger raises
                self._drop(running, unit, describe_error(error))

    def close(self) -> None:
        """Closes the loggers. A second call does nothing."""
        while self._running:
            running = self._running.pop(0)
            try:
                running.close()
            except Exception as error:  # whatever a user's logger raises
                self.losses.append(f"rows of logger {running.name!r}")
                self._print(f"logger {running.name!r} has lost rows: {describe_error(error)}")

    def _report_refusal(self, running: _Running, unit: str, error: OSError) -> None:
        kind, reason = f"{type(error).__name__} {error.errno}", describe_error(error)
        line = f"{unit}: not written by logger {running.name!r} ({reason}); it tries again with each row"
        for selected in running.notices.select([Notice(line, [kind])]):
            self._print(selected)

    def _drop(self, running: _Running, unit: str, reason: str) -> None:
        self.losses.append(f"rows of logger {running.name!r} from {unit} on")
        self._running.remove(running)
        self._print(f"{unit}: training goes on without logger {running.name!r} ({reason})")
        running.close_quietly()
