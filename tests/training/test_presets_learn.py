"""Presets that learn within seconds do."""

import pytest

from training.command_line import parse_config
from training.evaluation import environment_for, play
from training.policy_file import load_policy
from training.preparation import prepare
from training.run import execute


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["static", "hebbian"])
def test_cartpole_is_solved_by_its_preset(trainer, tmp_path):
    flags = ["--environment", "CartPole-v1", "--folder", str(tmp_path), "--test_episodes", "0", "--seed", "7"]
    (run,) = prepare(parse_config(trainer, flags, "test"))
    execute(run)
    saved = load_policy(run.folder / "best.dat")
    assert play(saved, environment_for(saved.environment), episodes=100, seed=1, threads=2).mean() >= 475
