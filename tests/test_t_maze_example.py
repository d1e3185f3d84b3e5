"""The example that draws who follows a reward that moves."""

import sys

import numpy as np
import pytest

from examples.t_maze import TRIALS_SHOWN, compute_success_around_change, main
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.files.policy_file import SavedPolicy
from hebbes.policies.linear import Linear


@pytest.fixture
def draw(tmp_path, monkeypatch):
    """The example, called with these flags and a folder for its runs."""
    small = ["--seeds", "1", "--generations", "2", "--popsize", "8", "--eval_episodes", "8", "--preset", "delayed"]

    def call(*flags):
        monkeypatch.setattr(sys, "argv", ["t_maze.py", *small, *flags, "--folder", str(tmp_path / "runs")])
        main()

    return call


@pytest.mark.slow
def test_it_trains_prints_and_draws(tmp_path, draw, capfd):
    picture = tmp_path / "a.png"
    draw("--chunk_size", "9", "--threads", "1", "--figure", str(picture))
    medians = [line for line in capfd.readouterr().out.splitlines() if ": median " in line]
    assert [line.split(":")[0] for line in medians] == ["plain", "reward", "reward and eligibility"]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--env_kwargs", "{trials: 20}"), "env_kwargs: trials must be >= 30 to be drawn, got 20"),
        (("--run_name", "x"), "run_name must be left out"),
        (("--figure", "missing/a.png"), "--figure"),
    ],
)
def test_bad_options_are_refused_before_training(tmp_path, draw, capfd, flags, message):
    with pytest.raises(SystemExit) as ended:
        draw(*flags)
    assert ended.value.code == 2
    assert message in capfd.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("env_kwargs", [{}, {"delay": 2}])
def test_who_always_goes_left_is_rewarded_by_the_other_lives_after_the_change(env_kwargs):
    spec = EnvironmentSpec("TMaze-v0", "gymnasium", env_kwargs)
    policy = Linear((3,), 2)
    weights = np.array([1, 1, 1, 0, 0, 0], np.float32)
    shares = compute_success_around_change(SavedPolicy(policy, "linear", weights, {}, "argmax", spec, {}), seed=3)
    before, after = shares[TRIALS_SHOWN < 0], shares[TRIALS_SHOWN >= 0]
    assert 0.3 < before[0] < 0.7
    assert (before == before[0]).all()
    assert after == pytest.approx(1 - before[0])
