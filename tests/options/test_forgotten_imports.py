"""If a file or a run needs modules of the user's own, the error names the flag with which it then works."""

import os
import re
import sys

import pytest

from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.options.evaluation import EvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.training.prepare import prepare
from tests.training.scripted_runs import make_scripted_config, train

MODULES = {
    "my_policy": "from hebbes.policies.linear import Linear\nclass Mine(Linear):\n    pass\n",
    "my_wrapper": "from hebbes.wrappers.base import BatchWrapper\nclass Mine(BatchWrapper):\n    pass\n",
    "my_shell": "import gymnasium\nclass Mine(gymnasium.Wrapper):\n    pass\n",
    "my_strategy": "from hebbes.strategies.openai_es import OpenAIES\nclass Mine(OpenAIES):\n    pass\n",
}
OF_FILES = {"tests.scripted", "my_policy", "my_wrapper", "my_shell"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run in which every class is a user's own."""
    (tmp_path / "modules").mkdir()
    for name, text in MODULES.items():
        (tmp_path / "modules" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    classes = {"policy": "my_policy:Mine", "strategy": "my_strategy:Mine", "generations": 1}
    wrappers = {"wrappers": ("my_wrapper:Mine",), "gymnasium_wrappers": ("my_shell:Mine",)}
    yield train(make_scripted_config(tmp_path, **classes, **wrappers))
    for name in MODULES:
        sys.modules.pop(name, None)


def read_advice(use, given):
    """The modules that the error says to give to --import."""
    with pytest.raises(ValueError) as refused:
        use(given)
    found = re.search(
        r"needs code from the modules .*; if you trust them, give --import (.*) \(in Python", str(refused.value)
    )
    assert found, refused.value
    return tuple(found[1].split())


@pytest.mark.parametrize("given", [(), ("my_wrapper",)])
def test_of_a_policy_file(given, folder, tmp_path):
    path = folder / "best.dat"

    def evaluate(imports):
        return load_entries(EvaluateConfig((str(path),), imports=imports))

    def start_from(imports):
        start = {"import": imports, "init_from": str(path), "run_name": "other"}
        config = make_scripted_config(tmp_path, **start)
        return prepare(config)

    for use in (lambda imports: read_policy_file(path, imports), evaluate):
        flag = read_advice(use, given)
        assert set(flag) == OF_FILES
        assert use(flag)
    assert set(read_advice(start_from, ("tests.scripted", *given))) == OF_FILES


@pytest.mark.parametrize("given", [(), ("my_wrapper", "tests.scripted")])
def test_of_a_run_to_be_resumed(given, folder):
    def resume(imports):
        return parse_config("static", ["--resume", str(folder), *(["--import", *imports] if imports else [])], "")

    flag = read_advice(resume, given)
    assert set(flag) == OF_FILES | {"my_strategy"}
    (run,) = prepare(resume(flag))
    os.close(run.lock)


def test_a_runs_own_config_needs_no_flag(folder, tmp_path):
    config = parse_config("static", ["--config", str(folder / "config.yaml"), "--run_name", "again"], "")
    (run,) = prepare(config)
    os.close(run.lock)
