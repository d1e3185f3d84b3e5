"""`sys.exit` in a user's code is no success, and a user's environment is not EnvPool's of the same name."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from hebbes.environments.spec import choose_backend
from hebbes.programs.exit_status import one_line_errors, signals_end_cleanly


def leave():
    sys.exit(0)


@pytest.mark.parametrize(("guard", "status"), [(one_line_errors, 2), (signals_end_cleanly, 1)])
def test_an_exit_in_foreign_code_is_told_and_is_no_success(guard, status, capsys):
    with pytest.raises(SystemExit) as stopped, guard():
        leave()
    assert stopped.value.code == status
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{__file__}, line 15, called sys.exit(0)" in line


def test_our_own_exits_stay_as_they_are(capsys):
    with pytest.raises(SystemExit) as stopped, signals_end_cleanly(), one_line_errors():
        raise ValueError("popsize must be >= 2")
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
        with pytest.raises(ValueError, match="Catch-v0 is registered by a package of its own"):
            choose_backend("envpool", "Catch-v0", {}, ())
    finally:
        del gymnasium.registry["Catch-v0"]
    assert choose_backend("auto", "CartPole-v1", {}, ()) == "envpool"
