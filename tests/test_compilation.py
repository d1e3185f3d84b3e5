"""Compiled code is kept under its own signature, also if several programs compile at the same time."""

import os
import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import hebbes
from hebbes import compilation
from hebbes.compilation import CacheFile
from tests.python_process import run_python

KERNELS = sorted(Path(hebbes.__file__).parent.glob("*/kernels/[!_]*.py"))


def make_file(folder):
    return CacheFile(str(folder), "kernels.learn", "stamp")


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_every_kernel_has_such_a_cache(path):
    assert not re.search(r"^(from numba import .*\bnjit\b|import numba)", path.read_text(), re.MULTILINE)
    module = import_module(f"hebbes.{path.parent.parent.name}.kernels.{path.stem}")
    kept = [each for each in vars(module).values() if isinstance(each, Dispatcher) and each._cache.cache_path]
    assert all(isinstance(each._cache._cache_file, CacheFile) for each in kept)
    assert kept


@pytest.mark.parametrize("last", ["A", "B"])
def test_programs_that_save_at_the_same_time_never_leave_the_code_of_one_under_the_other(last, tmp_path, monkeypatch):
    """Each has read the index before the other writes it. What the last one does not know is lost, and made again."""
    read = {name: make_file(tmp_path) for name in "AB"}
    with monkeypatch.context() as patched:
        patched.setattr(CacheFile, "_load_index", lambda self: {})
        patched.setattr(CacheFile, "_remove_files", lambda self: None)
        for name in sorted("AB", key=last.__eq__):
            read[name].save(f"rule {name}", f"code of {name}")
    (lost,) = {*"AB"} - {last}
    assert make_file(tmp_path).load(f"rule {last}") == f"code of {last}"
    assert make_file(tmp_path).load(f"rule {lost}") is None
    make_file(tmp_path).save(f"rule {lost}", f"code of {lost}")
    assert [make_file(tmp_path).load(f"rule {name}") for name in "AB"] == ["code of A", "code of B"]


def test_a_program_that_ends_while_it_saves_leaves_no_entry_without_its_code(tmp_path, monkeypatch):
    def end(self, name, data):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(CacheFile, "_save_data", end)
        make_file(tmp_path).save("rule A", "code of A")
    assert make_file(tmp_path).load("rule A") is None
    for code in ("code of A", "code of A again"):
        make_file(tmp_path).save("rule A", code)
        assert make_file(tmp_path).load("rule A") == code


def test_files_of_an_earlier_version_are_removed(tmp_path):
    earlier = CacheFile(str(tmp_path), "kernels.learn", "earlier stamp")
    for name in "AB":
        earlier.save(f"rule {name}", f"earlier code of {name}")
    make_file(tmp_path).save("rule A", "code of A")
    assert len([*tmp_path.glob("*.nbc")]) == 1
    assert make_file(tmp_path).load("rule A") == "code of A" and make_file(tmp_path).load("rule B") is None


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_file_that_is_cut_short_is_made_again(kind, tmp_path):
    make_file(tmp_path).save("rule A", "code of A")
    (cut,) = tmp_path.glob(f"*.{kind}")
    cut.write_bytes(b"")
    assert make_file(tmp_path).load("rule A") is None
    make_file(tmp_path).save("rule A", "code of A")
    assert make_file(tmp_path).load("rule A") == "code of A"


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_file_that_may_not_be_read_is_made_again(kind, tmp_path, monkeypatch):
    make_file(tmp_path).save("rule A", "code of A")
    (other,) = tmp_path.glob(f"*.{kind}")
    with monkeypatch.context() as patched:
        patched.setattr("builtins.open", refuse(other, open))
        assert make_file(tmp_path).load("rule A") is None
        make_file(tmp_path).save("rule A", "code of A")
    assert make_file(tmp_path).load("rule A") == "code of A"


def refuse(refused, open_file):
    """`open` for a user who may not read this file; root may read all."""

    def open_or_refuse(path, *arguments, **options):
        if Path(path) == refused and "w" not in "".join(map(str, arguments)):
            raise PermissionError(13, "Permission denied", str(path))
        return open_file(path, *arguments, **options)

    return open_or_refuse


def test_a_full_disk_costs_only_the_next_start_time(tmp_path, monkeypatch):
    def fill_disk(self, name, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CacheFile, "_save_data", fill_disk)
    make_file(tmp_path).save("rule A", "code of A")
    assert make_file(tmp_path).load("rule A") is None


def test_code_is_compiled_again_if_the_source_of_another_kernel_has_changed(tmp_path, monkeypatch):
    make_file(tmp_path).save("rule A", "code of A")
    monkeypatch.setattr(compilation, "SOURCES_STAMP", ((1, 2),))
    assert make_file(tmp_path).load("rule A") is None


def test_constants_in_kernels_are_of_files_that_it_knows():
    """A constant of another file would stay as it was in what is compiled."""
    known = {*map(Path.resolve, (*KERNELS, *compilation._INCLUDED))}
    for kernel in KERNELS:
        imported = re.findall(r"^from (hebbes\.\S+) import ([^(\n]+)$", kernel.read_text(), re.MULTILINE)
        for module, names in imported:
            constants = [name for name in names.split(", ") if name.isupper()]
            assert not constants or Path(import_module(module).__file__).resolve() in known, (kernel, constants)


@pytest.mark.slow
def test_without_a_folder_for_compiled_code_programs_compile_anew(tmp_path):
    package = tmp_path / "hebbes"
    shutil.copytree(compilation._PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "zoo"))
    for folder in {package, *(path.parent for path in package.rglob("*.py"))}:
        (folder / "__pycache__").touch()
    code = "import os; from hebbes.policies.kernels import linear; print(os.environ['NUMBA_CACHE_DIR'], linear.dot)"
    hidden = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    variables = {name: value for name, value in os.environ.items() if name not in hidden} | {"HOME": "/dev/null"}
    done = run_python("-c", code, cwd=tmp_path, env=variables)
    assert not Path(done.stdout.split()[0]).exists()
    assert "NUMBA_CACHE_DIR can name one" in done.stderr
