"""Every supported environment trains for a tiny generation, is saved, and is evaluated on Gymnasium."""

import os
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Discrete

from hebbes.evaluation.play import make_evaluation_spec, play
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.training.run_state import Run

pytestmark = pytest.mark.slow

BACKENDS = {
    "CartPole-v1": "envpool",
    "Pendulum-v1": "envpool",
    "MountainCarContinuous-v0": "envpool",
    "Acrobot-v1": "envpool",
    "LunarLander-v3": "envpool",
    "LunarLanderContinuous-v3": "envpool",
    "BipedalWalker-v3": "envpool",
    "CarRacing-v3": "envpool",
    "HalfCheetah-v5": "envpool",
    "Ant-v5": "envpool",
    "Hopper-v5": "envpool",
    "Walker2d-v5": "envpool",
    "Swimmer-v5": "envpool",
    "Humanoid-v5": "envpool",
    "AntBulletEnv-v0": "gymnasium",
    "Pong-v5": "envpool",
    "FrozenLake-v1": "envpool",
}

GROWING = ("Humanoid-v5", "Walker2d-v5")
"""Environments in whose presets the population grows, to thousands if episodes are short."""

TINY = [
    "--popsize",
    "4",
    "--generations",
    "1",
    "--max_episode_steps",
    "3",
    "--eval_episodes",
    "1",
    "--test_episodes",
    "0",
]


def skip_without_bullet(environment):
    """A mark that skips PyBullet's environments if it is not installed."""
    absent = "Bullet" in environment and find_spec("pybullet") is None
    return pytest.mark.skipif(absent, reason="PyBullet is not installed: it has wheels for CPython 3.11 on Linux only")


@pytest.mark.parametrize(
    ("environment", "backend"), [pytest.param(*row, marks=skip_without_bullet(row[0])) for row in BACKENDS.items()]
)
def test_trains_and_evaluates(environment, backend, tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "evaluation_cap", 30)
    flags = [*TINY, "--episodes_per_member", "1", "--threads", "1", "--run_name", "tiny", "--folder", str(tmp_path)]
    flags += ["--population_size_max", "12"] * (environment in GROWING)
    (run,) = prepare(parse_config("static", ["--environment", environment, *flags], "test"))
    assert run.task.environment.backend == backend
    execute(run)
    saved = read_policy_file(run.folder / "best.dat")
    assert np.array_equal(saved.weights, run.trainer.policy[0])
    assert saved.provenance["env_steps"] <= 3 * (1 + (run.config.trainer_options.population_size_max or 4))
    evaluated = make_evaluation_spec(saved.environment)
    returns = play(saved, evaluated, episodes=1, seed=0, threads=1, max_episode_steps=30).fitness
    assert returns.shape == (1,) and np.isfinite(returns).all()


class Changing(gymnasium.Env):
    """Has one more number in its observations each time it is made."""

    action_space, made = Discrete(2), 0

    def __init__(self):
        Changing.made += 1
        self.observation_space = Box(-1, 1, (Changing.made,))

    def reset(self, *, seed=None, options=None):
        return np.zeros(self.observation_space.shape, np.float32), {}

    def step(self, action):
        return np.zeros(self.observation_space.shape, np.float32), 0.0, False, True, {}


def test_spaces_that_change_are_refused(monkeypatch, tmp_path):
    monkeypatch.setitem(gymnasium.registry, "Changing-v0", EnvSpec("Changing-v0", Changing))
    options = ["--environment", "Changing-v0", "--import", __name__, "--policy", "linear", "--folder", str(tmp_path)]
    with pytest.raises(ValueError, match=r"on gymnasium, but .* when it is made again: its spaces must not change"):
        prepare(parse_config("static", options, "test"))


class Moves(Changing):
    """Changes the working folder when it is made."""

    def __init__(self):
        self.observation_space = Box(-1, 1, (1,))
        os.chdir("/")


def test_a_simulator_that_changes_the_working_folder_needs_an_absolute_folder(monkeypatch, tmp_path):
    monkeypatch.setitem(gymnasium.registry, "Moves-v0", EnvSpec("Moves-v0", Moves))
    options = [
        "--environment",
        "Moves-v0",
        "--import",
        __name__,
        "--policy",
        "linear",
        *TINY,
        "--engine",
        "in_process",
        "--folder",
    ]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"has changed the working folder to /; give folder as an absolute path$"):
        prepare(parse_config("static", [*options, "here"], "test"))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.chdir(tmp_path)
    (run,) = prepare(parse_config("static", [*options, str(tmp_path / "there")], "test"))
    execute(run)
    assert (run.folder / "best.dat").is_file()
