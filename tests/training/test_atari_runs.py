"""The runs of pytorch-es' README, and the options that Atari's preprocessing refuses."""

import numpy as np
import pytest

from hebbes.evaluation.play import make_evaluation_spec, play
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.training.run_state import Run
from tests.files.saved_policies import act

TINY = [
    *("--popsize", "2", "--generations", "1", "--max_episode_steps", "3"),
    *("--eval_episodes", "1", "--test_episodes", "0", "--threads", "1"),
]


@pytest.fixture(autouse=True)
def short_evaluations(monkeypatch):
    """An evaluation plays to the end of the game, and no test looks at its score."""
    monkeypatch.setattr(Run, "evaluation_cap", 30)


def prepare_run(tmp_path, *flags):
    (run,) = prepare(parse_config("static", [*flags, *TINY, "--folder", str(tmp_path)], "test"))
    return run


def train_policy(tmp_path, *flags):
    run = prepare_run(tmp_path, *flags)
    execute(run)
    return read_policy_file(run.folder / "best.dat")


@pytest.mark.slow
def test_pong_with_conv_lstm_sees_42_by_42(tmp_path):
    saved = train_policy(tmp_path, "--environment", "Pong-v5", "--policy", "conv_lstm", "--optimizer", "adam")
    assert [wrapper.name for wrapper in saved.environment.wrappers] == ["atari_42", "running_normalization"]
    assert len(saved.weights) == 588_710
    returns = play(
        saved, make_evaluation_spec(saved.environment), episodes=1, seed=0, threads=1, max_episode_steps=5
    ).fitness
    assert np.isfinite(returns).all()


def test_cartpole_with_the_small_network(tmp_path):
    saved = train_policy(tmp_path, "--environment", "CartPole-v1", "--policy", "small")
    assert len(saved.weights) == 4 * 64 + 64 + 64 * 64 + 64 + 64 * 2 + 2
    assert act(saved, np.zeros((3, 4), np.float32)).shape == (3,)


def test_pongs_other_preset_stacks_four_frames_of_84_by_84(tmp_path):
    run = prepare_run(tmp_path, "--environment", "Pong", "--preset", "cnn")
    assert run.task.agent.policy.observation_shape == (84, 84, 4)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["CartPole-v1", "--policy", "conv_lstm"], "conv_lstm takes images"),
        (["CartPole-v1", "--atari_42"], "atari_42 needs uint8 image observations of shape .*, got Box"),
        (["Pong-v5", "--grayscale"], "atari_42 takes .*; it cannot be combined with crop, grayscale or resize"),
        (["Pong-v5", "--virtual_batch", "-1"], "virtual_batch must be >= 0, got -1"),
        (["CartPole-v1", "--policy", "lstm", "--recurrent_size", "0"], "recurrent_size must be >= 1, got 0"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path, flags, message):
    with pytest.raises(ValueError, match=message) as error:
        prepare_run(tmp_path, "--environment", *flags)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_virtual_batch_is_collected_once_and_kept_by_files_and_resumes(tmp_path):
    flags = ("--environment", "Pong-v5", "--virtual_batch", "3", "--checkpoint_every", "1")
    run = prepare_run(tmp_path, *flags)
    execute(run)
    first = read_policy_file(run.folder / "latest.dat").buffers["virtual_batch"]
    assert first.shape == (3, 42, 42, 1) and np.ptp(first) > 0
    config = parse_config("static", ["--resume", str(run.folder), "--generations", "2"], "")
    (resumed,) = prepare(config)
    execute(resumed)
    saved = read_policy_file(run.folder / "latest.dat")
    assert np.array_equal(saved.buffers["virtual_batch"], first) and saved.provenance["generation"] == 2
    continued = prepare_run(tmp_path, *flags, "--seed", "5", "--init_from", str(run.folder / "latest.dat"))
    assert np.array_equal(continued.trainer.policy[1]["virtual_batch"], first)


@pytest.mark.parametrize("number", [9800, 10**8])
def test_a_virtual_batch_that_no_file_could_hold_is_refused(number, tmp_path):
    message = rf"virtual_batch must be <= .*, got {number}: a policy file holds no more frames"
    with pytest.raises(ValueError, match=message):
        prepare_run(tmp_path, "--environment", "Pong-v5", "--virtual_batch", str(number))
