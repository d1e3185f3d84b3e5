"""Atomic writes: a file has either its old or its new content."""

import os
import signal
import stat

import pytest

from hebbes.files.atomic_file import check_place, delete_leftovers, replace_file, write_atomically


def test_the_new_file_replaces_the_old_one_readable_for_all(tmp_path):
    path = tmp_path / "best.dat"
    path.write_bytes(b"old and longer")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_the_data_is_on_disk_before_the_name_points_to_it(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append(stat.S_ISDIR(os.fstat(descriptor).st_mode)))
    replace = type(tmp_path).replace
    monkeypatch.setattr(type(tmp_path), "replace", lambda *paths: (calls.append("replace"), replace(*paths)))
    write_atomically(tmp_path / "best.dat", b"new")
    assert calls == [False, "replace", True]  # sync the file, rename it, sync the folder


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_behind(tmp_path, monkeypatch):
    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    path = tmp_path / "best.dat"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    for name, why in {
        "a.jpg": r"output must name a \.png or \.svg file, got '.*a\.jpg'",
        "none/a.png": "output .*: the folder .*none does not exist",
        "file/a.png": "output .*: the folder .*file does not exist",
        "folder.png": "output .*: no file can be written there",
    }.items():
        with pytest.raises(ValueError, match=f"^{why}$"):
            check_place("output", tmp_path / name, [".png", ".svg"])


def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"^output .*/pipe: not a regular file$"):
        check_place("output", tmp_path / "pipe")
    with pytest.raises(OSError, match="Not a regular file"):
        write_atomically(tmp_path / "pipe", b"new")
    assert (tmp_path / "pipe").is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_a_missing_folder_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        write_atomically(tmp_path / "missing" / "best.dat", b"new")


def test_only_the_leftovers_of_a_killed_writer_are_deleted(tmp_path):
    path = tmp_path / "best.dat"
    write_atomically(path, b"whole")
    (tmp_path / "notes.tmp").write_text("a user's own")
    if (writer := os.fork()) == 0:
        type(path).replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
        write_atomically(path, b"never renamed")
    assert os.WIFSIGNALED(os.waitpid(writer, 0)[1])
    assert len(list(tmp_path.iterdir())) == 3
    delete_leftovers(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["best.dat", "notes.tmp"]
    assert path.read_bytes() == b"whole"


def test_a_leftover_that_cannot_be_opened_is_left(tmp_path, monkeypatch):
    writes_nothing = tmp_path / ".best.dat.abcd1234.tmp"
    writes_nothing.write_bytes(b"another user's")

    def refuse(path, *arguments):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(tmp_path), "open", refuse)  # root, who runs tests, may open everything
    delete_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [writes_nothing]


def test_a_file_that_another_process_is_writing_is_left_alone(tmp_path):
    path = tmp_path / "film.mp4"
    (began, begin), (wait, go_on) = os.pipe(), os.pipe()
    if (writer := os.fork()) == 0:
        with replace_file(path) as temporary:
            os.write(begin, b"!")
            os.read(wait, 1)
            temporary.write_bytes(b"whole")
        os._exit(0)
    os.read(began, 1)
    before = list(tmp_path.iterdir())
    delete_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == before != []
    os.write(go_on, b"!")
    assert os.waitpid(writer, 0)[1] == 0
    assert path.read_bytes() == b"whole"
