"""The gate's own rules on the source, which ruff does not have: sizes, names, and what is looked up by name."""

import ast
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hebbes.registry.lookup import find_class
from hebbes.registry.tables import TABLES
from tests.python_process import ROOT, run_python

MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 50
VAGUE_NAMES = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> list[Path]:
    """Every Python file of ours: what runs leave in weights/ and hidden folders are not."""
    tops = [
        path
        for path in ROOT.iterdir()
        if not path.name.startswith(".") and path.name not in ("weights", "build") and not path.is_symlink()
    ]
    return sorted(
        file for top in tops for file in ([top] if top.suffix == ".py" else top.rglob("*.py") if top.is_dir() else [])
    )


SOURCES = {path.relative_to(ROOT): path.read_text() for path in sources()}
OUTSIDE_TESTS = {path: source for path, source in SOURCES.items() if path.parts[0] != "tests"}


def long_functions(source: str) -> Iterator[str]:
    """Functions over the limit, compiled kernels excepted, which may be as long as their loop nest."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function) and node.end_lineno is not None:
            length = node.end_lineno - node.lineno + 1
            is_compiled = any(ast.unparse(decorator).startswith("njit") for decorator in node.decorator_list)
            if length > MAX_FUNCTION_LINES and not is_compiled:
                yield f"{node.name}: {length} lines, at most {MAX_FUNCTION_LINES}"


def vague_names(path: Path) -> set[str]:
    return {word for part in path.parts for word in Path(part).stem.lower().split("_") if word in VAGUE_NAMES}


def test_files_are_small():
    lengths = {str(path): len(source.splitlines()) for path, source in SOURCES.items()}
    assert {path: length for path, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_functions_are_small():
    assert [f"{path}: {what}" for path, source in OUTSIDE_TESTS.items() for what in long_functions(source)] == []


def test_names_say_what_is_inside():
    assert [str(path) for path in SOURCES if vague_names(path)] == []


UNSAFE = """\
eval(text)
exec(text)
import builtins; run = builtins.eval
from builtins import exec as run
import pickle; pickle.load(file)
import pickle as p; p.load(file)
import pickle as p; p.Unpickler(file)
from pickle import load as l
from pickle import loads
from pickle import Unpickler as Reader
from pickle import *
import pickle; read = pickle.load
import pickle; getattr(pickle, "load")(file)
import pickle; class Reader(pickle.Unpickler): pass
import pickle; class Reader(pickle._Unpickler): pass
import pickle as p; p._loads(text)
from pickle import _Unpickler as Reader
import _pickle
import shelve as s; s.open(path)
import marshal as m; m.loads(text)
import dill as d; d.load(file)
from cloudpickle import loads as read
import joblib; joblib.load(path)
from joblib import load as read
import pandas as pd; pd.read_pickle(path)
from runpy import run_path
import yaml; yaml.load(file)
import yaml; yaml.load(file, yaml.Loader)
from yaml import load as read
import yaml; read(file, Loader=yaml.FullLoader)
import yaml; read(file, Loader=yaml.CLoader)
import numpy as np; np.load(file, allow_pickle=True)
from numpy import load as read
from numpy.lib.format import read_array
from numpy.lib.npyio import NpzFile
import torch; torch.load(file, weights_only=False)
from torch import load as read
import torch as t; t.serialization.load(file)
import torch; torch.jit.load(file)
from torch.package import PackageImporter
"""
SAFE = """\
network.eval()
import yaml; yaml.safe_load(file)
import json; json.load(file)
import pickle; pickle.dumps(value)
"""


@pytest.mark.parametrize(("sources", "is_refused"), [(UNSAFE, True), (SAFE, False)])
def test_the_gate_refuses_what_may_execute_what_it_reads(tmp_path, sources, is_refused):
    package = tmp_path / "hebbes"
    package.mkdir()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for number, source in enumerate(sources.splitlines()):
        (package / f"{number}.py").write_text("\n".join(source.split("; ")) + "\n")
    said = run_python("-m", "ruff", "check", "--output-format", "concise", ".", cwd=tmp_path, status=1).stdout
    refused = {int(number) for number in re.findall(r"(\d+)\.py:\d+:\d+: (?:S\d+|F403|B009|TID251) ", said)}
    assert refused == (set(range(len(sources.splitlines()))) if is_refused else set())


def test_eval_and_exec_are_not_even_named():  # ruff sees only calls of them
    names = {
        str(path): {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        for path, source in OUTSIDE_TESTS.items()
    }
    assert [path for path, used in names.items() if used & {"eval", "exec"}] == []


@pytest.mark.parametrize(
    ("decorator", "lines", "found"), [("", 50, 0), ("", 51, 1), ("@cached\n", 51, 1), ("@njit(cache=True)\n", 51, 0)]
)
def test_function_lines_are_counted_from_def_to_the_last(decorator, lines, found):
    source = f"from numba import njit\n{decorator}def f():\n" + "    x = 1\n" * (lines - 1)
    assert len(list(long_functions(source))) == found


@pytest.mark.parametrize(
    ("path", "found"),
    [("utils/io.py", {"utils"}), ("training/file_helpers.py", {"helpers"}), ("hebbes/execution/episode.py", set())],
)
def test_vague_names_are_seen(path, found):
    assert vague_names(Path(path)) == found


def test_every_source_is_looked_at():
    found = {str(path) for path in SOURCES}
    assert {"hebbes/contracts/policy.py", "examples/minimal_es.py", "tests/test_layout.py"} <= found
    assert not any(name.startswith((".venv", "weights")) for name in found)


def order_subpackages():
    """The subpackages, highest first, as import-linter holds them; those of one layer have one number."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = (
        each["layers"] for each in config["tool"]["importlinter"]["contracts"] if each["name"] == "subpackages"
    )
    return {subpackage.strip(): number for number, layer in enumerate(layers) for subpackage in layer.split("|")}


def test_what_is_looked_up_by_name_lies_in_a_room_below_or_in_the_callers_own():
    order = order_subpackages()
    subpackages = {kind: {name.split(".")[1] for name in table.values()} for kind, table in TABLES.items()}
    calls = []
    for path, source in OUTSIDE_TESTS.items():
        if path.parts[0] == "hebbes" and path.parts[1] != "registry":
            kinds = re.findall(r'\bfind_class\(\s*"(\w+)"', source)
            names_every_kind = source.count("find_class(") == len(kinds)
            calls += [(path, kind) for kind in (kinds if names_every_kind else TABLES)]
    assert len(calls) > 10
    assert [
        (path, kind)
        for path, kind in calls
        for subpackage in subpackages[kind] - {path.parts[1]}
        if order[path.parts[1]] >= order[subpackage]
    ] == []


@pytest.mark.parametrize("kind", sorted(TABLES.keys() - {"trainer"}))  # those are named after programs
def test_every_name_in_the_tables_is_a_class_in_a_file_of_that_name(kind):
    for name, place in TABLES[kind].items():
        assert place.split(":")[0].rsplit(".", 1)[1].removesuffix("_engine") == name
        assert place.split(":")[1].lower().removesuffix("engine") == name.replace("_", "")
        assert find_class(kind, name).__module__ == place.split(":")[0]


@pytest.mark.parametrize("link", ["policies", "wrappers"])
def test_the_links_at_the_root_are_for_readers_and_cannot_be_imported(link):
    assert (ROOT / link).resolve() == ROOT / "hebbes" / link
    done = run_python("-c", f"import {link}", status=1)
    assert f"ImportError: import hebbes.{link}, not {link}" in done.stderr
