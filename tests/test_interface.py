"""The names that `import hebbes` gives: loaded when first used, and each with an example that runs."""

import doctest
import os
import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import hebbes
from hebbes.evaluation.arguments import GUARD
from tests.evaluation.files_to_play import save_balancing_policy
from tests.python_process import ROOT, run_python

RETURNED = (
    *("evaluation.loaded_policy:LoadedPolicy", "evaluation.loaded_policy:Session"),
    *("evaluation.evaluation_env:EvaluationEnv", "evaluation.evaluate:Evaluation"),
    "training.run:TrainedRun",
)


def test_importing_the_package_imports_nothing_but_the_standard_library():
    done = run_python(
        "-c", "import sys; before = {*sys.modules}; import hebbes; print(*sorted({*sys.modules} - before))"
    )
    loaded = done.stdout.split()
    assert [name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names] == ["hebbes"], done.stderr
    assert not {"asyncio", "multiprocessing", "typing", "unittest"} & set(loaded)


def test_names_are_listed_before_they_are_loaded():
    done = run_python(
        "-c", "import hebbes, sys; print(sorted(hebbes.__all__) == [n for n in dir(hebbes) if n in hebbes.__all__])"
    )
    assert done.stdout.strip() == "True", done.stderr
    with pytest.raises(AttributeError, match="module 'hebbes' has no attribute 'no_such_name'"):
        _ = hebbes.no_such_name


def test_type_checkers_see_the_names_that_are_loaded():
    text = Path(hebbes.__file__).read_text()
    for name, place in hebbes._PLACES.items():
        module, _, attribute = place.partition(":")
        assert f"    from {module} import {attribute}\n" in text
        assert name in hebbes.__all__
    assert len(hebbes._PLACES) == len(hebbes.__all__)


@pytest.mark.slow
def test_a_script_without_the_guard_trains_once_and_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import hebbes\n"
        "options = {'environment': 'CartPole-v1', 'generations': 1, 'threads': 2, 'test_episodes': 8}\n"
        "hebbes.train(options, quiet=True)\n"
    )
    done = run_python(script, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, status=1)
    last = done.stderr.splitlines()[-1]
    assert last.endswith(f"worker processes import the main script, so that it needs {GUARD}, or threads=1"), last
    assert len(list((tmp_path / "weights" / "CartPole-v1").iterdir())) == 1  # the workers trained nothing


@pytest.mark.slow
def test_a_script_from_standard_input_needs_no_guard(tmp_path):
    script = "import hebbes\nprint(hebbes.evaluate('zoo:CartPole-v1', episodes=2, threads=2).returns)\n"
    done = run_python("-", input=script, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "500" in done.stdout


def run_examples(found, folder, monkeypatch):
    """Runs the examples in a docstring, and those of a class's methods, in a folder with cartpole.dat."""
    save_balancing_policy(folder / "cartpole.dat")
    monkeypatch.chdir(folder)
    tests = [test for test in doctest.DocTestFinder().find(found, found.__name__) if test.examples]
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in tests:
        runner.run(test)
    assert tests, f"{found.__name__} has no example"
    assert runner.failures == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", hebbes.__all__)
def test_the_example_of_every_public_name_runs(name, tmp_path, monkeypatch):
    run_examples(getattr(hebbes, name), tmp_path, monkeypatch)


@pytest.mark.parametrize("place", RETURNED)
def test_the_example_of_every_class_that_is_returned_runs(place, tmp_path, monkeypatch):
    module, _, name = place.partition(":")
    run_examples(getattr(import_module(f"hebbes.{module}"), name), tmp_path, monkeypatch)


def test_the_readmes_example_runs(tmp_path):
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = run_python("-c", program, cwd=tmp_path, env=environment)
    numbers = [float(number) for number in re.findall(r"\d\.\d+", done.stdout.splitlines()[-1])]
    assert numbers and all(abs(number - 3) < 0.01 for number in numbers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": np.array([1, 2])}, "preset takes one value, got 1 2"),
        ({"sigma": b"1"}, "sigma cannot be bytes, got b'1'"),
        ({"env_kwargs": {"a": b"1"}}, "env_kwargs"),
        ({"init_from": ""}, "init_from must be a path, got ''"),
        ({"resume": "a" * 300}, "a{300}/checkpoint: File name too long"),
        ({"seeds": 2}, "seeds must be 1 in Python, got 2: call train once for each seed"),
        ({"sigma": [0.1, 0.2]}, r"sigma takes one value, got 0\.1 0\.2"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_by_the_option_s_name(options, message, tmp_path):
    with pytest.raises(ValueError, match=f"^{message}"):
        hebbes.train({"environment": "CartPole-v1", "folder": str(tmp_path), **options}, quiet=True)
    assert not list(tmp_path.iterdir())


def test_a_callback_that_changes_the_working_folder_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    options = {"environment": "CartPole-v1", "policy": "linear", "generations": 2, "threads": 1, "test_episodes": 2}
    done = hebbes.train({**options, "folder": "runs"}, on_generation=lambda row: os.chdir("/"), quiet=True)
    assert done.is_complete and done.folder.is_relative_to(tmp_path / "runs")
    assert done.best.is_file() and list(done.metrics["generation"]) == [1, 2]
