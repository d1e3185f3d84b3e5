"""`sys.exit` in a user's code is no success; a user's environment is not EnvPool's of the same name."""

import dataclasses
import os
import signal
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import choose_backend
from hebbes.evaluation.play import make_evaluation_spec
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line


def leave():
    sys.exit(0)


@pytest.mark.parametrize(("guard", "status"), [(report_errors_in_one_line, 2), (end_cleanly_on_signals, 1)])
def test_an_exit_in_foreign_code_is_reported_and_is_no_success(guard, status, capsys):
    with pytest.raises(SystemExit) as stopped, guard():
        leave()
    assert stopped.value.code == status
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{__file__}, line {leave.__code__.co_firstlineno + 1}, called sys.exit(0)" in line


def interrupt(kind):
    raise kind


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit])
def test_what_looks_like_an_interruption_in_foreign_code_is_reported(kind, capsys):
    with pytest.raises(SystemExit) as stopped, end_cleanly_on_signals():
        interrupt(kind)
    assert stopped.value.code == 1
    place = f"{__file__}, line {interrupt.__code__.co_firstlineno + 1}"
    assert f"stopped: {place}, raised {kind.__name__}" in capsys.readouterr().err


class Panic(BaseException):
    """As the PanicException of extensions in Rust."""


@pytest.mark.parametrize(("guard", "status"), [(report_errors_in_one_line, 2), (end_cleanly_on_signals, 1)])
def test_what_is_no_exception_in_foreign_code_is_reported(guard, status, capsys):
    with pytest.raises(SystemExit) as stopped, guard():
        interrupt(Panic("out of bounds"))
    assert stopped.value.code == status
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"{__file__}, line {interrupt.__code__.co_firstlineno + 1}, raised Panic: out of bounds")


class SendsSignal:
    """A descriptor during whose naming a signal comes. Python 3.11 wraps what is raised there."""

    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGTERM)


def make_class():
    return type("Plotted", (), {"part": SendsSignal()})


def use_class():
    try:
        make_class()
    except RuntimeError as error:  # as code of ours does that names what failed
        raise ValueError("environment cannot be started") from error


@pytest.mark.parametrize("work", [make_class, use_class])
def test_a_signal_while_a_class_is_made_ends_the_program_as_any_other(work, capsys):
    with pytest.raises(SystemExit) as stopped, end_cleanly_on_signals(), report_errors_in_one_line():
        work()
    assert stopped.value.code == 128 + signal.SIGTERM
    assert "error" not in capsys.readouterr().err


def test_our_own_exits_stay_as_they_are(capsys):
    with pytest.raises(SystemExit) as stopped, end_cleanly_on_signals(), report_errors_in_one_line():
        raise ValueError("population_size must be >= 2")
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


class Catch(gymnasium.Env):
    """Another game than EnvPool's Catch-v0."""

    observation_space, action_space = Box(-1, 1, (10, 5), np.float32), Discrete(3)


def test_a_users_environment_is_not_envpools_of_the_same_name():
    assert choose_backend("auto", "Catch-v0", {}, ()) == "envpool"
    gymnasium.register("Catch-v0", entry_point=Catch)
    try:
        assert choose_backend("auto", "Catch-v0", {}, ()) == "gymnasium"
        with pytest.raises(ValueError, match="a package other than Gymnasium registers Catch-v0"):
            choose_backend("envpool", "Catch-v0", {}, ())
    finally:
        del gymnasium.registry["Catch-v0"]


def test_one_that_a_user_registers_again_is_not_envpools(monkeypatch):
    found = gymnasium.registry["CartPole-v1"]
    again = dataclasses.replace(found, kwargs={"sutton_barto_reward": True})
    monkeypatch.setitem(gymnasium.registry, "CartPole-v1", again)
    assert choose_backend("auto", "CartPole-v1", {}, ()) == "gymnasium"


def test_nor_is_it_in_an_evaluation_whose_package_is_imported_first(tmp_path, monkeypatch):
    code = "import gymnasium; gymnasium.register('Catch-v0', entry_point='tests.programs.test_foreign_exits:Catch')"
    (tmp_path / "catching.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    spec = EnvironmentSpec("Catch-v0", "gymnasium", imports=("catching",))
    try:
        assert make_evaluation_spec(spec, backend="auto").backend == "gymnasium"
    finally:
        del gymnasium.registry["Catch-v0"]
    assert choose_backend("auto", "CartPole-v1", {}, ()) == "envpool"
