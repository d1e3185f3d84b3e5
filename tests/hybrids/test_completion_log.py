"""The file that keeps the order in which jobs are completed. What runs do with it: test_asynchronous.py."""

from pathlib import Path

import pytest

from hebbes.hybrids.completion_log import CompletionLog


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "completion_log must be a file, got ''"),
        ("/dev/zero", "completion_log must be a file, got '/dev/zero'"),
        ("/missing/log", "completion_log /missing/log cannot be written: No such file or directory"),
        ("/proc/log", "completion_log /proc/log cannot be written: "),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(path, message):
    with pytest.raises(ValueError, match=message):
        CompletionLog(path, seed=0)


def test_links_that_lead_to_themselves_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(ValueError, match="cannot be written: its links lead back to it"):
        CompletionLog(str(tmp_path / "link"), seed=0)


def test_a_full_disk_is_named_with_the_file(tmp_path, monkeypatch):
    log = CompletionLog(str(tmp_path / "log"), seed=0)
    monkeypatch.setattr(log, "_path", Path("/dev/full"))
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
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
