"""Several loggers of a run: options of a user's own, and failures, each of which costs one line."""

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from hebbes.contracts.option import list_options, option
from hebbes.environments.part_spec import PartSpec
from hebbes.programs.exit_status import end_cleanly_on_signals
from hebbes.recording.base import RunLogger
from hebbes.recording.loggers import Loggers, check_logger
from hebbes.recording.tensorboard import TensorBoard
from hebbes.registry.lookup import find_class
from tests.recording.events import limit_file_size, list_scalars, read_events


@dataclass(eq=False)
class TextLogger(RunLogger):
    """A user's logger: one column of the rows in a text file."""

    switch: ClassVar[str] = "also write a column to a text file"
    column: str = option("return_mean", "the column to write")
    decimals: int = option(2, "decimals of each number", range=">= 0")

    def __post_init__(self):
        super().__post_init__()
        self._file = (self.folder / f"{self.column}.txt").open("a")

    def write(self, row):
        self._file.write(f"{row['generation']} {row.pop(self.column):.{self.decimals}f}\n")

    def close(self):
        self._file.close()


class FailingLogger:
    """A user's logger that is no dataclass. Its class says where it raises which errors, one after the other."""

    raises: ClassVar[dict[str, list[BaseException | None]]] = {}
    made: ClassVar[list["FailingLogger"]] = []

    def __init__(self, folder: Path, units: int):
        self.rows, self.closed = [], 0
        self.made.append(self)
        self._raise("init")

    def write(self, row: Mapping[str, float]):
        self.rows.append(row["generation"])
        self._raise("write")

    def close(self):
        self.closed += 1
        self._raise("close")

    def _raise(self, where):
        errors = self.raises.get(where, [])
        if errors and (error := errors.pop(0)) is not None:
            raise error


class Speechless:
    """Lacks `write`."""

    def __init__(self, folder, units):
        pass

    def close(self):
        pass


TEXT, FAILING = (f"{__name__}:{each.__name__}" for each in (TextLogger, FailingLogger))


def choose(name, **options):
    return PartSpec(name, options)


@pytest.fixture
def made(monkeypatch):
    """Every FailingLogger that the test makes."""
    monkeypatch.setattr(FailingLogger, "raises", {})
    monkeypatch.setattr(FailingLogger, "made", [])
    return FailingLogger.made


def make_row(generation):
    return {"generation": generation, "return_mean": generation / 3, "sigma": 0.5}


def write_rows(loggers, generations):
    rows = [make_row(generation) for generation in generations]
    for row in rows:
        loggers.write(row)
    return rows


def test_a_users_logger_has_options_and_each_logger_gets_every_row(tmp_path):
    lines = []
    choices = [choose("tensorboard"), choose(TEXT, decimals=3), choose(TEXT, column="sigma")]
    loggers = Loggers(choices, tmp_path, 4, lines.append)
    (row,) = write_rows(loggers, [5])
    loggers.close()
    loggers.close()
    assert not loggers.losses
    assert row == make_row(5)  # although a logger took a column out of its row
    assert (tmp_path / "return_mean.txt").read_text() == "5 1.667\n"
    assert (tmp_path / "sigma.txt").read_text() == "5 0.50\n"
    events = read_events(tmp_path)
    assert [tag for _, tag, _ in list_scalars(events)] == ["return_mean", "sigma"]
    assert [event.step for event in events if event.HasField("session_log")] == [5]
    assert lines == []


def test_the_fields_of_a_logger_that_have_defaults_are_its_options():
    assert [each.name for each in list_options(TextLogger)] == ["column", "decimals"]
    assert list_options(TensorBoard) == []
    assert TensorBoard.switch == "also write the metrics as TensorBoard events (needs tensorboardX)"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"decimals": -1}, "decimals must be >= 0, got -1"),
        ({"column": 3}, "column must be a text, got 3"),
        ({"colum": "sigma"}, "TypeError: .* unexpected keyword argument 'colum'"),
    ],
)
def test_a_logger_with_wrong_options_costs_a_line_that_names_it(options, reason, tmp_path):
    lines = []
    assert Loggers([choose(TEXT, **options)], tmp_path, 0, lines.append).losses
    (line,) = lines
    assert re.match(f"training goes on without logger '{TEXT}': logger '{TEXT}' cannot be used: {reason}", line)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        (TEXT, {"decimals": -1}, "decimals must be >= 0, got -1"),
        (TEXT, {"colum": "sigma"}, "it has no option 'colum'; it takes column, decimals"),
        (FAILING, {"column": "sigma"}, "it has no option 'column'; it takes none"),
        (TEXT, {}, "pip install text"),
    ],
)
def test_a_choice_is_checked_before_anything_is_made(name, options, reason, made, monkeypatch):
    def miss_package():
        raise ValueError("pip install text")

    check_logger(choose(TEXT, decimals=0))
    check_logger(choose(FAILING))
    monkeypatch.setattr(TextLogger, "check_installed", miss_package)
    with pytest.raises(ValueError, match=f"^logger '{name}' cannot be used: {reason}"):
        check_logger(choose(name, **options))
    assert made == []


@pytest.mark.parametrize("error", [RuntimeError("no key"), OSError("no key"), ValueError("no key")])
def test_a_logger_that_cannot_be_made_costs_a_line_and_the_others_go_on(error, made, tmp_path):
    FailingLogger.raises["init"] = [None, error, None]
    lines = []
    loggers = Loggers([choose(FAILING)] * 3, tmp_path, 0, lines.append)
    write_rows(loggers, [1])
    loggers.close()
    assert loggers.losses
    (line,) = lines
    assert re.search(rf"goes on without logger '{FAILING}': .*no key \(.*test_loggers.py, line \d+", line)
    assert [each.rows for each in made] == [[1], [], [1]]


def test_a_logger_that_fails_is_closed_after_one_line_and_the_others_go_on(made, tmp_path):
    FailingLogger.raises |= {"write": [None, KeyError("fitness\nof it")], "close": [RuntimeError("not this line too")]}
    lines = []
    loggers = Loggers([choose(FAILING), choose(TEXT, decimals=0)], tmp_path, 0, lines.append)
    write_rows(loggers, [1, 2, 3])
    loggers.close()
    assert loggers.losses
    assert lines == [f"generation 2: training goes on without logger '{FAILING}' (KeyError: 'fitness\\nof it')"]
    assert [(each.rows, each.closed) for each in made] == [([1, 2], 1)]
    assert (tmp_path / "return_mean.txt").read_text() == "1 0\n2 1\n3 1\n"


def test_a_row_that_is_refused_is_reported_once_for_each_kind_and_the_logger_goes_on(made, tmp_path):
    gone, full = ConnectionError("gone"), OSError(28, "No space left on device")
    FailingLogger.raises["write"] = [gone, ConnectionError("gone at 12:01"), None, full, gone]
    lines = []
    loggers = Loggers([choose(FAILING)], tmp_path, 0, lines.append)
    write_rows(loggers, range(1, 7))
    loggers.close()
    assert not loggers.losses
    gone, full = "ConnectionError: gone", "OSError: [Errno 28] No space left on device"
    assert lines == [
        f"generation {number}: not written by logger '{FAILING}' ({reason}); it tries again with each row{last}"
        for number, reason, last in [(1, gone, ""), (4, full, ""), (5, gone, "; this is not said again")]
    ]
    assert made[0].rows == [1, 2, 3, 4, 5, 6]


def test_a_logger_that_fails_when_it_is_closed_costs_one_line(made, tmp_path, capsys):
    FailingLogger.raises["close"] = [RuntimeError("no\nconnection")]
    loggers = Loggers([choose(FAILING)] * 2, tmp_path, 0)
    write_rows(loggers, [1])
    loggers.close()
    loggers.close()
    assert len(loggers.losses) == 1
    assert capsys.readouterr().err == f"logger '{FAILING}' has lost rows: RuntimeError: no\n"
    assert [each.closed for each in made] == [1, 1]


def test_what_a_user_stops_is_not_a_failure_of_a_logger(made, tmp_path):
    FailingLogger.raises["write"] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        write_rows(Loggers([choose(FAILING)], tmp_path, 0), [1])


def test_a_logger_that_calls_sys_exit_is_dropped_like_one_that_raises(made, tmp_path):
    FailingLogger.raises |= {"init": [SystemExit(2)], "write": [SystemExit(3)], "close": [SystemExit(), SystemExit(4)]}
    lines = []
    loggers = Loggers([choose(FAILING)] * 3, tmp_path, 0, lines.append)
    write_rows(loggers, [1, 2])
    loggers.close()
    place = rf"ForeignExitError: {__file__}, line \d+, called sys.exit"
    assert re.fullmatch(rf"training goes on without logger .*: {place}\(2\)", lines[0])
    assert re.fullmatch(rf"generation 1: training goes on without logger '{FAILING}' \({place}\(3\)\)", lines[1])
    assert re.fullmatch(rf"logger '{FAILING}' has lost rows: {place}\(4\)", lines[2])
    assert [each.rows for each in made] == [[], [1], [1, 2]]


def test_a_signal_while_a_logger_writes_still_ends_the_run(made, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(FailingLogger, "write", lambda self, row: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(SystemExit) as ended, end_cleanly_on_signals():
        write_rows(Loggers([choose(FAILING)], tmp_path, 0), [1])
    assert ended.value.code == 128 + signal.SIGTERM
    assert capfd.readouterr().err == "stopping; again to stop at once\n"


def test_what_a_full_disk_refuses_is_reported_once_and_written_when_there_is_room(tmp_path):
    lines = []
    for has_room in (True, False):
        folder = tmp_path / str(has_room)
        folder.mkdir()
        loggers = Loggers([choose("tensorboard")], folder, 0, lines.append)
        (path,) = folder.iterdir()
        with limit_file_size(path.stat().st_size + 9):  # room for a part of a record
            write_rows(loggers, [1, 2])
            if not has_room:
                loggers.close()
        loggers.close()
        assert bool(loggers.losses) != has_room
        assert [step for step, tag, _ in list_scalars(read_events(folder)) if tag == "sigma"] == [1, 2] * has_room
    reason = "OSError: [Errno 27] File too large"
    refused = f"generation 1: not written by logger 'tensorboard' ({reason}); it tries again with each row"
    assert lines == [refused, refused, f"logger 'tensorboard' has lost rows: {reason}"]


def test_a_full_disk_at_the_start_is_an_error_of_the_disk(tmp_path):
    with limit_file_size(9), pytest.raises(OSError, match="too large"):
        Loggers([choose("tensorboard")], tmp_path, 0)


def test_a_class_that_is_no_logger_is_told_what_it_lacks():
    name = f"{__name__}:Speechless"
    with pytest.raises(ValueError, match=rf"^logger '{name}' is not a logger: it lacks write \(inherit from hebbes\."):
        find_class("logger", name)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(ValueError, match=r"^unknown logger 'tensorbord', did you mean 'tensorboard'[?]"):
        find_class("logger", "tensorbord")


@pytest.mark.parametrize("installed", [True, False])
def test_what_to_install_for_tensorboard_is_told_if_it_is_missing(installed, monkeypatch):
    monkeypatch.setattr("hebbes.recording.tensorboard.find_spec", lambda name: name if installed else None)
    TextLogger.check_installed()
    if installed:
        TensorBoard.check_installed()
    else:
        with pytest.raises(ValueError, match=r"^tensorboard needs the package tensorboardX; pip install"):
            TensorBoard.check_installed()
