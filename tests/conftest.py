"""For all tests: checked shapes, no limits of time, and the programs, called in this process."""

import os
import signal
import sys
from importlib import import_module
from pathlib import Path

import hypothesis
import pytest

from tests.shape_checks import REFUSALS, begin_test, check_shapes

check_shapes()

from hebbes.execution.parents_signals import PARENTS_SIGNALS  # noqa: E402
from hebbes.programs.commands import COMMANDS  # noqa: E402
from hebbes.reporting import learning_curve  # noqa: E402
from tests.short_runs import write_figure, write_one_pixel  # noqa: E402

os.fsync = lambda descriptor: None
"""No test cuts the power, so none waits for the disk."""

learning_curve.write_figure = write_one_pixel

hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


def pytest_addoption(parser):
    parser.addoption(
        "--earlier", metavar="COMMIT", default="HEAD", help="the commit with which tests/compare_results.py compares"
    )


@pytest.fixture(autouse=True)
def restored_signals():
    """What a test does with signals, or a program that it calls in this process, must not reach later tests."""
    actions = {number: signal.getsignal(number) for number in PARENTS_SIGNALS}
    yield
    for number, action in actions.items():
        signal.signal(number, action)


@pytest.fixture(autouse=True)
def no_refusal_is_swallowed():
    """A test cannot pass because the checks of shapes refused what our own code should refuse, or compute."""
    begin_test()
    yield
    assert REFUSALS == []


@pytest.fixture
def drawn_curves(monkeypatch):
    """In this test, learning curves have all of their pixels."""
    monkeypatch.setattr(learning_curve, "write_figure", write_figure)


@pytest.fixture
def refusal(capfd, monkeypatch):
    """A function: a program's only line after bad input, with which it exits with status 2."""
    monkeypatch.chdir(Path(__file__).parent.parent)

    def call(program, *arguments):
        """The program is a script, such as "train_static.py", or a command, such as "plot"."""
        monkeypatch.setattr(sys, "argv", [program, *map(str, arguments)])
        module, _, function = COMMANDS[program.removesuffix(".py")][0].partition(":")
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            getattr(import_module(module), function)("")
        assert ended.value.code == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"{program}: error: ")
        return line

    return call
