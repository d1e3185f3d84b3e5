"""The programs under a Python that cannot run them: one line that says what is missing and what to do, and status 2."""

import ast
import re
import sys

import pytest

from hebbes.programs import startup
from tests.python_process import ROOT, run_python

SCRIPTS = sorted(path.name for path in ROOT.glob("*.py"))
READ_FIRST = [
    f"hebbes/{name}.py"
    for name in ("__init__", "__main__", "programs/__init__", "programs/commands", "programs/startup")
]
NOT_ALWAYS_NEEDED = {"envpool", "optuna", "torch"}
BROUGHT_BY_OTHERS = {"llvmlite", "sqlalchemy"}


@pytest.fixture
def refused(monkeypatch, capsys):
    """A function: the line with which a program ends at its start."""

    def begin():
        monkeypatch.setattr(sys, "argv", ["train_static.py"])
        with pytest.raises(SystemExit) as ended:
            startup.prepare_process()
        assert ended.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return begin


@pytest.mark.parametrize("script", SCRIPTS)
def test_without_the_requirements_every_program_says_what_to_do(script):
    done = run_python("-S", script, "--help", env={"PATH": "/usr/bin:/bin"}, status=2)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{script}: error: numpy and {len(startup.PACKAGES) - 1} other packages are not installed")
    assert "source .venv/bin/activate" in line


def test_a_single_missing_package_is_named(monkeypatch, refused):
    monkeypatch.setattr(startup, "PACKAGES", {"sys": "present", "no_such_module": "no-such-package"})
    assert "error: no-such-package is not installed for " in refused()


def test_an_old_python_is_named_with_what_is_needed(monkeypatch, refused):
    monkeypatch.setattr(startup, "LEAST_PYTHON", (9, 1))
    assert "error: Python 9.1 or newer is needed, and " in refused()


def test_a_working_folder_that_is_gone_is_said_to_be(tmp_path, monkeypatch, refused):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert refused() == "train_static.py: error: the folder in which this was called is gone"


@pytest.mark.parametrize("path", [*SCRIPTS, *READ_FIRST])
def test_an_old_python_can_read_what_says_so(path):
    ast.parse((ROOT / path).read_text(), feature_version=(3, 6))


def test_the_environment_of_make_setup_is_named_where_it_is_not_used(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(startup, "LEAST_PYTHON", (9, 1))
    monkeypatch.setattr(startup, "__file__", str(tmp_path / "hebbes" / "programs" / "startup.py"))
    assert refused().endswith("; run `make setup`, then `source .venv/bin/activate`")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    assert refused().endswith("; run `source .venv/bin/activate` first")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert refused().endswith("; run `make setup`, then `source .venv/bin/activate`")


def test_what_is_asked_for_is_what_the_package_imports_and_the_requirements_bring():
    statements = [
        statement for path in (ROOT / "hebbes").rglob("*.py") for statement in ast.parse(path.read_text()).body
    ]
    named = [name.name for each in statements if isinstance(each, ast.Import) for name in each.names]
    named += [each.module for each in statements if isinstance(each, ast.ImportFrom) and each.module]
    imported = {name.partition(".")[0] for name in named} - set(sys.stdlib_module_names) - {"hebbes"}
    assert imported - NOT_ALWAYS_NEEDED - BROUGHT_BY_OTHERS <= set(startup.PACKAGES)
    requirements = re.findall(r"^[\w-]+", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert set(startup.PACKAGES.values()) <= set(requirements)


def test_a_package_that_a_users_module_lacks_is_not_taken_for_ours(tmp_path, monkeypatch, refusal):
    (tmp_path / "lacks_something.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    line = refusal("train_static.py", "--import", "lacks_something", "--environment", "CartPole-v1")
    assert "--import: cannot import 'lacks_something': ModuleNotFoundError: No module named 'no_such_package'" in line
    assert "make setup" not in line


@pytest.mark.parametrize("option", ["--folder", "--resume"])
def test_a_path_that_no_file_system_takes_is_one_line(option, refusal):
    assert refusal("train_static.py", "--environment", "CartPole-v1", option, "x" * 300).endswith("File name too long")
