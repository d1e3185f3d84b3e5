"""The file that keeps the order in which jobs are completed. What runs do with it: test_asynchronous.py."""

from functools import reduce
from pathlib import Path

import pytest

from hebbes.contracts.engine import EngineError
from hebbes.hybrids.completion_log import CompletionLog, extend_history


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "completion_log  is not the log of a run: it must be a file"),
        ("/dev/zero", "completion_log /dev/zero is not the log of a run: it must be a file"),
        ("x" * 300, "completion_log x+ cannot be written: File name too long"),
        ("/missing/log", "completion_log /missing/log cannot be written: No such file or directory"),
        ("/proc/log", "completion_log /proc/log cannot be written: "),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(path, message):
    with pytest.raises(ValueError, match=message):
        CompletionLog(path, seed=0)


def test_a_file_that_another_process_makes_at_the_same_time_stays(tmp_path, monkeypatch):
    path = tmp_path / "log"
    path.write_bytes(b"theirs")

    def find_none(self):
        raise FileNotFoundError

    with monkeypatch.context() as patches, pytest.raises(ValueError, match="cannot be written: File exists"):
        patches.setattr(Path, "stat", find_none)
        CompletionLog(str(path), seed=0)
    assert path.read_bytes() == b"theirs"


def test_links_that_lead_to_themselves_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(ValueError, match="cannot be written: Too many levels of symbolic links"):
        CompletionLog(str(tmp_path / "link"), seed=0)


def test_a_full_disk_is_named_with_the_file(tmp_path, monkeypatch):
    log = CompletionLog(str(tmp_path / "log"), seed=0)
    monkeypatch.setattr(log, "_path", Path("/dev/full"))
    with pytest.raises(EngineError, match="completion_log /dev/full cannot be written: No space left on device"):
        log.append({"completion": 0})


def test_a_command_that_is_refused_later_leaves_no_file_and_changes_none(tmp_path):
    CompletionLog(str(tmp_path / "new"), seed=0)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "link").symlink_to(tmp_path / "target")
    CompletionLog(str(tmp_path / "link"), seed=0).append({"completion": 0, "seed": 0})
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").stat().st_size > 0
    path, whole = tmp_path / "log", b'{"completion": 0, "seed": 0}\n'
    path.write_bytes(whole + b'{"comp')
    log = CompletionLog(str(path), seed=0)
    assert path.read_bytes() == whole + b'{"comp'
    log.append({"completion": 1, "seed": 0})
    log.append({"completion": 2, "seed": 0})
    assert path.read_bytes() == whole + b'{"completion": 1, "seed": 0}\n{"completion": 2, "seed": 0}\n'


@pytest.mark.parametrize(
    "content", [b"notes", b'{"lr": 0.1}', b'{"completion": 0, "seed": 0}\nnotes', b"[" * 200_000 + b"\n"]
)
def test_a_file_that_is_no_log_is_refused_and_stays(content, tmp_path):
    path = tmp_path / "notes"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not the log of a run: "):
        CompletionLog(str(path), seed=0)
    assert path.read_bytes() == content


def test_of_two_processes_with_one_log_the_later_ends(tmp_path):
    first, second = (CompletionLog(str(tmp_path / "log"), seed=0) for _ in range(2))
    first.append({"completion": 0, "seed": 0})
    with pytest.raises(EngineError, match="was changed by another process"):
        second.append({"completion": 0, "seed": 0})
    first.append({"completion": 1, "seed": 0})
    assert len((tmp_path / "log").read_text().splitlines()) == 2


def test_a_resume_says_that_its_log_lacks_completions_or_has_others(tmp_path, capsys):
    path, entries = str(tmp_path / "log"), [{"completion": number, "seed": 0, "job": "mean"} for number in range(3)]
    history = reduce(extend_history, entries, "")
    for log in (CompletionLog(None, seed=0), CompletionLog(path, seed=0)):
        log.report_difference(0, "")
        assert capsys.readouterr().err == ""
        log.report_difference(3, history)
    assert "lacks completions before number 3: it alone cannot repeat the run" in capsys.readouterr().err
    for entry in entries:
        log.append(entry)
    CompletionLog(path, seed=0).report_difference(3, history)
    assert capsys.readouterr().err == ""
    other = reduce(extend_history, [entries[0], {**entries[1], "job": "critics"}, entries[2]], "")
    CompletionLog(path, seed=0).report_difference(3, other)
    assert "has other completions before number 3: it alone cannot repeat the run" in capsys.readouterr().err
