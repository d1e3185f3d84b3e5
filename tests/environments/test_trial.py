"""An environment that cannot be stepped is refused before a run, in one line."""

import sys
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from hebbes.contracts import errors
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.gymnasium_env import GymnasiumEnv
from hebbes.environments.trial import start_and_check
from hebbes.options.command_line import parse_config
from hebbes.training.prepare import prepare

ZEROS = np.zeros(3, np.float32)


class Untested(gymnasium.Env):
    """Returns from `step` what it is told to, or raises it. It takes only allowed actions."""

    def __init__(self, returned=(ZEROS, 0.0, False, True, {}), action_space=None):
        self.observation_space = Box(-1, 1, (3,), np.float32)
        self.action_space = action_space or Box(-1, 1, (2,), np.float32)
        self._returned = returned

    def reset(self, *, seed=None, options=None):
        return ZEROS, {}

    def step(self, action):
        assert self.action_space.contains(action)
        if isinstance(self._returned, Exception):
            raise self._returned
        return self._returned


gymnasium.register("Untested-v0", entry_point=Untested)


@pytest.fixture(autouse=True)
def _forget_shown_errors(monkeypatch):
    monkeypatch.setattr(errors, "_shown", set())


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        ((ZEROS, np.zeros(1), False, False, {}), r"ValueError: reward has shape \(1,\), not \(\)"),
        ((ZEROS, 0.0, False, {}), "ValueError: step did not return a tuple of five"),
        ((np.zeros(4), 0.0, False, False, {}), r"ValueError: observation has shape \(4,\), not \(3,\)"),
        ((ZEROS, "a", False, False, {}), "TypeError: reward is not of real numbers but of dtype "),
        (RuntimeError("no such motor"), "RuntimeError: no such motor"),
    ],
)
def test_it_is_named_before_anything_is_made(returned, reason, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Untested.__init__, "__defaults__", (returned, None))
    with pytest.raises(ValueError, match=f"^environment 'Untested-v0' fails in its first env step: {reason}"):
        prepare(parse_config("static", ["--environment", "Untested-v0", "--folder", str(tmp_path)], ""))
    assert capsys.readouterr().err == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "space",
    [
        Box(np.float32([-1, 2]), np.float32([1, 5])),
        Box(-np.inf, np.inf, (2,), np.float32),
        Box(3, 9, (2, 2), np.int64),
        Discrete(3, start=5),
        MultiDiscrete([2, 3], start=[4, -7]),
        MultiBinary(2),
    ],
)
def test_it_is_stepped_with_an_allowed_action(space, monkeypatch):
    step = Untested.step
    env, taken = GymnasiumEnv("Untested-v0", [0], {"action_space": space}), []
    monkeypatch.setattr(Untested, "step", lambda self, action: taken.append(action) or step(self, action))
    start_and_check(env, EnvironmentSpec("Untested-v0", "gymnasium"))
    env.close()
    assert len(taken) == 1


def test_an_env_step_that_ends_the_episode_is_no_fault(tmp_path):
    runs = prepare(parse_config("static", ["--environment", "Untested-v0", "--folder", str(tmp_path)], ""))
    assert list(runs)


class Moody(Untested):
    """The first of all fails in its first env step, and prints in all others."""

    made: ClassVar[list] = []

    def __init__(self):
        super().__init__()
        self.made.append(self)

    def step(self, action):
        if self is self.made[0]:
            raise RuntimeError("once")
        print("a word of the simulator's", file=sys.stderr)
        return super().step(action)


class Leaving(Untested):
    def step(self, action):
        sys.exit(0)


gymnasium.register("Moody-v0", entry_point=Moody)
gymnasium.register("Leaving-v0", entry_point=Leaving)


def test_a_simulator_that_fails_once_is_tried_again_and_what_it_prints_is_shown(tmp_path, capsys):
    assert list(prepare(parse_config("static", ["--environment", "Moody-v0", "--folder", str(tmp_path)], "")))
    said = capsys.readouterr().err
    assert "a word of the simulator's" in said and "once" not in said


def test_one_that_leaves_the_program_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"^environment 'Leaving-v0' cannot be started: .* called sys.exit\(0\)"):
        prepare(parse_config("static", ["--environment", "Leaving-v0", "--folder", str(tmp_path)], ""))
