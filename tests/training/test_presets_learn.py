"""Presets that should learn within seconds do so."""

import pytest

from hebbes.evaluation.play import make_evaluation_spec, play
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.training.prepare import prepare
from hebbes.training.run import execute


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["static", "hebbian"])
def test_cartpole_is_solved_by_its_preset(trainer, tmp_path):
    flags = ["--environment", "CartPole-v1", "--folder", str(tmp_path), "--test_episodes", "0", "--seed", "200"]
    flags += ["--stop_at_return", "500"]  # the largest possible return
    (run,) = prepare(parse_config(trainer, flags, "test"))
    execute(run)
    saved = read_policy_file(run.folder / "best.dat")
    assert play(saved, make_evaluation_spec(saved.environment), episodes=20, seed=1, threads=1).fitness.mean() >= 475


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "generations", "least", "most"),
    [
        # 30 trials; the expected return is at most 27.2 (docs/plasticity.md)
        (["--seed", "7", "--modulation", "reward"], 10, 10, 27.7),
        (["--seed", "7", "--modulation", "none"], 20, -3, 3),
        # two junctions and 40 trials; at most 36.15
        (["--seed", "200", "--preset", "delayed", "--eligibility"], 10, 15, 36.7),
        (["--seed", "200", "--preset", "delayed", "--no_eligibility"], 20, -3, 3),
    ],
    ids=["reward", "without reward", "delayed", "delayed without eligibility"],
)
def test_only_a_policy_that_sees_reward_and_remembers_it_solves_the_t_maze(flags, generations, least, most, tmp_path):
    flags = ["--environment", "TMaze-v0", "--folder", str(tmp_path), "--test_episodes", "0", *flags]
    flags += ["--generations", str(generations), "--eval_every", "5", "--threads", "1"]
    (run,) = prepare(parse_config("hebbian", flags, "test"))
    execute(run)
    saved = read_policy_file(run.folder / "best.dat")
    mean = play(saved, make_evaluation_spec(saved.environment), episodes=100, seed=1, threads=1).fitness.mean()
    assert least <= mean <= most
