"""The gate's own rules on the source: sizes, names, and calls that could execute what they read."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 50
VAGUE_NAMES = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"}
UNSAFE_CALLS = {
    *("eval", "exec", "builtins.eval", "builtins.exec", "marshal.load", "marshal.loads"),
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "dill.load", "dill.loads", "joblib.load"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "yaml.full_load_all", "yaml.unsafe_load_all"),
}
MUST_SAY = {"torch.load": ("weights_only", True), "numpy.load": ("allow_pickle", False)}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> list[Path]:
    """Every Python file of ours: what runs leave in weights/ and hidden folders are not."""
    tops = [path for path in ROOT.iterdir() if not path.name.startswith(".") and path.name != "weights"]
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


def is_unsafe(call: ast.Call, name: str) -> bool:
    if name not in MUST_SAY:
        return name in UNSAFE_CALLS
    option, value = MUST_SAY[name]
    said = [keyword.value for keyword in call.keywords if keyword.arg == option]
    return not any(isinstance(node, ast.Constant) and node.value is value for node in said)


def unsafe_calls(source: str) -> list[str]:
    """Line and name of every call in the source that may execute code from its argument."""
    tree = ast.parse(source)
    names = imported_names(tree)
    calls = [(node, dotted(node.func, names)) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [f"line {call.lineno}: {name}" for call, name in calls if is_unsafe(call, name)]


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
    assert [f"{path}: {what}" for path, source in OUTSIDE_TESTS.items() for what in unsafe_calls(source)] == []


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
    ],
)
def test_unsafe_calls_are_seen(source):
    assert len(unsafe_calls(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "network.eval()",
        "import torch\ntorch.load(file, weights_only=True)",
        "import yaml\nyaml.safe_load(file)",
        "import numpy as np\nnp.load(file, allow_pickle=False)",
        "import json\njson.load(file)",
    ],
)
def test_safe_calls_pass(source):
    assert unsafe_calls(source) == []


@pytest.mark.parametrize(
    ("decorator", "lines", "found"), [("", 50, 0), ("", 51, 1), ("@cached\n", 51, 1), ("@njit(cache=True)\n", 51, 0)]
)
def test_function_lines_are_counted_from_def_to_the_last(decorator, lines, found):
    source = f"from numba import njit\n{decorator}def f():\n" + "    x = 1\n" * (lines - 1)
    assert len(list(long_functions(source))) == found


@pytest.mark.parametrize(
    ("path", "found"),
    [("utils/io.py", {"utils"}), ("training/file_helpers.py", {"helpers"}), ("rollouts/episode.py", set())],
)
def test_vague_names_are_seen(path, found):
    assert vague_names(Path(path)) == found


def test_every_source_is_looked_at():
    found = {str(path) for path in SOURCES}
    assert {"contracts/policy.py", "examples/minimal_es.py", "tests/test_layout.py"} <= found
    assert not any(name.startswith((".venv", "weights")) for name in found)
