"""Compiled code is kept under its own signature, also if several programs compile at the same time."""

import fcntl
import threading
from importlib import import_module
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import hebbes
from hebbes.compilation import LockedCacheFile

KERNELS = sorted(Path(hebbes.__file__).parent.glob("*/kernels/[!_]*.py"))


def make_file(folder):
    return LockedCacheFile(str(folder), "kernels.learn", "stamp")


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_every_kernel_has_such_a_cache(path):
    module = import_module(f"hebbes.{path.parent.parent.name}.kernels.{path.stem}")
    kept = [each for each in vars(module).values() if isinstance(each, Dispatcher) and each._cache.cache_path]
    assert all(isinstance(each._cache._cache_file, LockedCacheFile) for each in kept)
    assert kept or path.stem == "simd"  # which has intrinsics


def test_a_program_waits_until_another_has_saved(tmp_path):
    make_file(tmp_path).save("rule A", "code of A")
    with (tmp_path / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        saving = threading.Thread(target=make_file(tmp_path).save, args=("rule B", "code of B"))
        saving.start()
        saving.join(0.2)
        assert saving.is_alive()
        other_program = make_file(tmp_path)  # which saves rule C while it has the lock
        other_program._save_data(other_program._data_name(2), "code of C")
        other_program._save_index({"rule A": other_program._data_name(1), "rule C": other_program._data_name(2)})
    saving.join()
    assert [make_file(tmp_path).load(f"rule {name}") for name in "ABC"] == [f"code of {name}" for name in "ABC"]


def test_a_program_that_ends_while_it_saves_leaves_no_entry_without_its_code(tmp_path, monkeypatch):
    def end(self, name, data):
        raise KeyboardInterrupt

    (tmp_path / "kernels.learn.1.nbc").write_bytes(b"code of an earlier version")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(LockedCacheFile, "_save_data", end)
        make_file(tmp_path).save("rule A", "code of A")
    assert make_file(tmp_path).load("rule A") is None
    make_file(tmp_path).save("rule A", "code of A")
    make_file(tmp_path).save("rule A", "code of A again")
    assert make_file(tmp_path).load("rule A") == "code of A again"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["kernels.learn.1.nbc", "kernels.learn.nbi", "lock"]


def test_a_folder_in_which_nobody_saves_needs_no_lock(tmp_path):
    assert make_file(tmp_path / "absent").load("rule A") is None
