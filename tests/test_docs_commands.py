"""Every command and all Python in README and docs runs: long ones made short, those of clusters not at all."""

import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from hebbes.programs.commands import COMMANDS
from tests.docs_commands import (
    BEFORE,
    OTHER_MACHINES,
    PAGES,
    SHORT,
    find_program,
    list_commands,
    prepare_folder,
    shorten,
    split_command,
)
from tests.forked_programs import run_forked
from tests.python_process import ROOT
from tests.short_runs import EVALUATION_CAP

ELSEWHERE = {"extending": "tests/test_extending.py"}
"""Pages whose blocks another test runs."""
RUN_HERE = [page for page in PAGES if page.stem not in {**OTHER_MACHINES, **ELSEWHERE}]
WITH_COMMANDS = [page for page in RUN_HERE if list_commands(page)]
WITH_PYTHON = [page for page in RUN_HERE if "```python" in page.read_text() and page.stem != "README"]
"""README's Python is run by tests/test_interface.py, which also looks at its numbers."""


def run(words, folder, variables):
    path = os.pathsep.join((str(folder), str(ROOT)))
    environment = {**os.environ, **variables, "PYTHONPATH": path, EVALUATION_CAP: "20"}
    if words[0] == sys.executable and "--help" not in words:
        done = run_forked(words[1:], folder, environment)
    else:
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def run_command(command, folder):
    """Runs a command of a page; a target of make only so far that make says what it would do."""
    variables, words = split_command(command)
    if words[0] == "xvfb-run":
        end = words.index("--") + 1
        prefix, words = words[:end] if shutil.which("xvfb-run") else [], words[end:]
        run([*prefix, sys.executable, *shorten(words, folder)[1:]], folder, variables)
    elif words[0] == "make":
        run(["make", "--dry-run", *words[1:]], ROOT, variables)
    elif find_program(words).startswith("benchmarks."):
        check_flags(words, folder)
    elif words[0] != "source":
        run([sys.executable, *shorten(words, folder)[1:]], folder, variables)


def check_flags(words, folder):
    """A benchmark takes minutes, and has a test of its own. Here its flags are looked for in its help."""
    flags = {word for word in words if word.startswith("--")}
    first = next(number for number, word in enumerate(words) if word.startswith("--"))
    said = run([sys.executable, *words[1:first], "--help"], folder, {})
    assert [flag for flag in sorted(flags) if flag not in said] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_its_commands_run_one_after_the_other(page, tmp_path):
    prepare_folder(tmp_path)
    for command in [*BEFORE.get(page.stem, ()), *list_commands(page)]:
        run_command(command, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_its_python_runs(page, tmp_path):
    prepare_folder(tmp_path)
    blocks = re.findall(r"^ *```python\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "blocks.py").write_text("\n".join(map(textwrap.dedent, blocks)))
    run([sys.executable, "blocks.py"], tmp_path, {})


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.stem)
def test_all_its_commands_are_known(page):
    known = {*COMMANDS, *SHORT, "make", "source", "xvfb-run", "examples.run_picture"}
    programs = {find_program(split_command(command)[1]) for command in list_commands(page)}
    assert {name for name in programs - known if not name.startswith("benchmarks.")} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_are_in_blocks_that_are_run(page):
    """A block that is only indented, or has another name, would not be run."""
    kinds = set(re.findall(r"^```(\w+)$", page.read_text(), re.MULTILINE))
    assert not kinds & {"bash", "shell", "console", "py"}
    outside = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    assert not re.findall(r"^    (?:python|hebbes|make|[A-Z_]+=\S+ python) .*", outside, re.MULTILINE)
