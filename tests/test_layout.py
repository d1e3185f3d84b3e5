"""The gate's own rules on the source: sizes, names, and calls that could execute what they read."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hebbes.registry.lookup import find_class
from hebbes.registry.tables import TABLES

ROOT = Path(__file__).parent.parent
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 50
VAGUE_NAMES = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"}
UNSAFE_MODULES = {"pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
UNSAFE = {
    *("eval", "exec", "builtins.eval", "builtins.exec", "runpy.run_path", "shelve.open", "shelve.Shelf", "joblib.load"),
    *(f"{module}.{name}" for module in UNSAFE_MODULES for name in ("load", "loads", "Unpickler", "_Unpickler")),
    *(f"yaml.{name}" for name in ("load", "load_all", "full_load", "full_load_all", "unsafe_load", "unsafe_load_all")),
    *("yaml.Loader", "yaml.FullLoader", "yaml.UnsafeLoader", "pandas.read_pickle"),
    *("torch.hub.load", "torch.jit.load", "torch.package.PackageImporter", "torch.package"),
}
"""May run code that they read; not even to be named, whether called at once, passed on or inherited from."""
SAFE_ONLY_WITH = {
    "torch.load": "weights_only",
    "torch.serialization.load": "weights_only",
    "numpy.load": "allow_pickle",
}
SAFE_VALUES = {"weights_only": True, "allow_pickle": False}

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


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What each name that the file imports stands for: {"np": "numpy", "load": "torch.load"}."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """The full name of what is called, "" where it is no plain dotted name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value, names)):
        return f"{owner}.{node.attr}"
    return ""


def says(call: ast.Call, option: str) -> bool | None:
    """Whether the call sets an option to its safe value in plain sight; None where it does not mention it."""
    said = [keyword.value for keyword in call.keywords if keyword.arg == option]
    return isinstance(said[0], ast.Constant) and said[0].value is SAFE_VALUES[option] if said else None


def unsafe_uses(source: str) -> list[str]:
    """Line and name of everything in the source that may execute code from what it reads."""
    tree = ast.parse(source)
    names = imported_names(tree)
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    owners = {node.value for node in nodes if isinstance(node, ast.Attribute)}
    call_of = {call.func: call for call in calls}
    found = {(call.lineno, dotted(call.func, names)) for call in calls for o in SAFE_VALUES if says(call, o) is False}
    for node in nodes:
        name = dotted(node, names) if isinstance(node, ast.Name | ast.Attribute) else ""
        as_a_whole = name in UNSAFE_MODULES and node not in owners  # getattr(pickle, "load") or load = pickle
        unguarded = name in SAFE_ONLY_WITH and not (node in call_of and says(call_of[node], SAFE_ONLY_WITH[name]))
        if name in UNSAFE or as_a_whole or unguarded:
            found.add((node.lineno, name))
        if isinstance(node, ast.ImportFrom) and node.module in UNSAFE_MODULES and node.names[0].name == "*":
            found.add((node.lineno, f"{node.module}.*"))
    return [f"line {line}: {name}" for line, name in sorted(found)]


def long_functions(source: str) -> Iterator[str]:
    """Functions over the limit, compiled kernels excepted, which may be as long as their loop nest."""
    tree = ast.parse(source)
    names = imported_names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, Function) or node.end_lineno is None:
            continue
        decorators = [part.func if isinstance(part, ast.Call) else part for part in node.decorator_list]
        compiled = any(dotted(decorator, names) == "numba.njit" for decorator in decorators)
        if not compiled and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES:
            yield f"{node.name}: {node.end_lineno - node.lineno + 1} lines, at most {MAX_FUNCTION_LINES}"


def vague_names(path: Path) -> set[str]:
    return {word for part in path.parts for word in Path(part).stem.lower().split("_") if word in VAGUE_NAMES}


def test_files_are_small():
    lengths = {str(path): len(source.splitlines()) for path, source in SOURCES.items()}
    assert {path: length for path, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_functions_are_small():
    assert [f"{path}: {what}" for path, source in OUTSIDE_TESTS.items() for what in long_functions(source)] == []


def test_names_say_what_is_inside():
    assert [str(path) for path in SOURCES if vague_names(path)] == []


def test_nothing_executes_what_it_reads():
    assert [f"{path}: {what}" for path, source in OUTSIDE_TESTS.items() for what in unsafe_uses(source)] == []


@pytest.mark.parametrize(
    "source",
    [
        "eval(text)",
        "exec(text)",
        "import pickle as p\np.load(file)",
        "from pickle import loads\nloads(data)",
        "import torch\ntorch.load(file)",
        "import torch\ntorch.load(file, weights_only=False)",
        "from torch import load\nload(file, weights_only=chosen)",
        "import yaml\nyaml.load(file, yaml.Loader)",
        "import numpy as np\nnp.load(file)",
        "import numpy as np\nnp.load(file, allow_pickle=chosen)",
        "from numpy.lib.format import read_array\nread_array(file, allow_pickle=True)",
        "from numpy import load as read\nread(file)",
        "import torch as t\nt.serialization.load(file)",
        "import torch\ntorch.jit.load(file)",
        "import torch\ntorch.load(file, allow_pickle=False)",
        "import torch\nread = torch.load",
        "import torch\nread(torch.load, weights_only=True)",
        "from torch.package import PackageImporter\nPackageImporter(file)",
        "import pickle\nread = pickle.load",
        "import pickle\ngetattr(pickle, 'load')(file)",
        "import pickle\nimport torch\ntorch.load(file, weights_only=True, pickle_module=pickle)",
        "import pickle\nclass Reader(pickle.Unpickler): pass",
        "from pickle import *",
        "import _pickle\n_pickle.loads(data)",
        "import shelve\nshelve.open(path)",
        "import pandas as pd\npd.read_pickle(path)",
        "import yaml\nread(file, Loader=yaml.FullLoader)",
    ],
)
def test_unsafe_uses_are_seen(source):
    assert len({use.partition(":")[0] for use in unsafe_uses(source)}) == 1


@pytest.mark.parametrize(
    "source",
    [
        "network.eval()",
        "import torch\ntorch.load(file, weights_only=True)",
        "import yaml\nyaml.safe_load(file)",
        "import numpy as np\nnp.load(file, allow_pickle=False)",
        "import json\njson.load(file)",
        "import pickle\npickle.dumps(value)",
    ],
)
def test_safe_uses_pass(source):
    assert unsafe_uses(source) == []


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


def rooms_in_order():
    """The rooms, highest first, as import-linter holds them; those of one layer have one number."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = (each["layers"] for each in config["tool"]["importlinter"]["contracts"] if each["name"] == "rooms")
    return {room.strip(): number for number, layer in enumerate(layers) for room in layer.split("|")}


def test_what_is_looked_up_by_name_lies_in_a_room_below_or_in_the_callers_own():
    order = rooms_in_order()
    rooms = {kind: {name.split(".")[1] for name in table.values()} for kind, table in TABLES.items()}
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
        for room in rooms[kind] - {path.parts[1]}
        if order[path.parts[1]] >= order[room]
    ] == []


@pytest.mark.parametrize("kind", TABLES)
def test_every_name_in_the_tables_is_a_class_in_a_file_of_that_name(kind):
    for name, place in TABLES[kind].items():
        assert place.split(":")[0].rsplit(".", 1)[1] == name
        assert place.split(":")[1].lower() == name.replace("_", "")
        assert find_class(kind, name).__module__ == place.split(":")[0]


@pytest.mark.parametrize("link", ["policies", "wrappers"])
def test_the_links_at_the_root_are_for_readers_and_cannot_be_imported(link):
    assert (ROOT / link).resolve() == ROOT / "hebbes" / link
    done = subprocess.run([sys.executable, "-c", f"import {link}"], cwd=ROOT, capture_output=True, text=True)
    assert f"ImportError: import hebbes.{link}, not {link}" in done.stderr
