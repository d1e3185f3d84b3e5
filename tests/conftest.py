"""For all tests: checked shapes, no limits of time, and the programs behind the scripts, called in this process."""

import os
import signal
import sys
from functools import partial
from pathlib import Path

import hypothesis
import pytest

from tests.shape_checks import REFUSALS, check_shapes

check_shapes()

from hebbes.execution.parents_signals import PARENTS_SIGNALS  # noqa: E402
from hebbes.options.evaluation import EvaluateConfig  # noqa: E402
from hebbes.programs.evaluate import evaluate  # noqa: E402
from hebbes.programs.train import train  # noqa: E402

os.fsync = lambda descriptor: None
"""No test cuts the power, so none waits for the disk."""

hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


BASELINE = "a615fe5"
"""The last commit that altered the results of the runs in tests/compare_results.py."""


def pytest_addoption(parser):
    parser.addoption(
        "--earlier", metavar="COMMIT", default=BASELINE, help="the commit with which tests/compare_results.py compares"
    )


@pytest.fixture(autouse=True)
def restored_signals():
    """A program that a test calls in this process leaves signals ignored, which later tests must not inherit."""
    actions = {number: signal.getsignal(number) for number in PARENTS_SIGNALS}
    yield
    for number, action in actions.items():
        signal.signal(number, action)


@pytest.fixture(autouse=True)
def no_refusal_is_swallowed():
    """A test cannot pass because the checks of shapes refused what our own code should refuse, or compute."""
    REFUSALS.clear()
    yield
    assert REFUSALS == []


PROGRAMS = {
    "train_static.py": partial(train, "static", ""),
    "train_hebbian.py": partial(train, "hebbian", ""),
    "evaluate_static.py": partial(evaluate, EvaluateConfig, ""),
}


@pytest.fixture
def refusal(capfd, monkeypatch):
    """A function: a program's only line after bad input, with which it exits with status 2."""
    monkeypatch.chdir(Path(__file__).parent.parent)

    def call(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            PROGRAMS[script]()
        assert ended.value.code == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"{script}: error: ")
        return line

    return call
