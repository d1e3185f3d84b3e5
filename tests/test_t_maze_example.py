"""The example that draws who follows a reward that moves."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.t_maze import AROUND, rewarded_around_change
from policies.linear import Linear
from rollouts.environments import EnvironmentSpec
from training.policy_file import SavedPolicy

ROOT = Path(__file__).parent.parent


def _run(*flags):
    command = [sys.executable, "-m", "examples.t_maze", "--seeds", "1", "--generations", "2", "--popsize", "8"]
    command += ["--eval_episodes", "8", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)


@pytest.mark.slow
def test_it_trains_prints_and_draws(tmp_path):
    picture = tmp_path / "a.png"
    done = _run(
        "--preset", "delayed", "--chunk_size", "9", "--figure", str(picture), "--folder", str(tmp_path / "runs")
    )
    assert done.returncode == 0, done.stderr
    medians = [line for line in done.stdout.splitlines() if ": median " in line]
    assert [line.split(":")[0] for line in medians] == ["plain", "reward", "reward and eligibility"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_lives_too_short_to_draw_are_refused_before_training(tmp_path):
    done = _run("--preset", "delayed", "--env_kwargs", "{trials: 20}", "--folder", str(tmp_path / "runs"))
    assert done.returncode == 2
    assert "env_kwargs: trials must be >= 30 to be drawn, got 20" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("env_kwargs", [{}, {"delay": 2}])
def test_who_always_goes_left_is_rewarded_by_the_other_lives_after_the_change(env_kwargs):
    spec = EnvironmentSpec("TMaze-v0", "gymnasium", env_kwargs)
    policy = Linear((3,), 2)
    weights = np.array([1, 1, 1, 0, 0, 0], np.float32)
    shares = rewarded_around_change(SavedPolicy(policy, "linear", weights, {}, "argmax", spec, {}), seed=3)
    before, after = shares[AROUND < 0], shares[AROUND >= 0]
    assert 0.3 < before[0] < 0.7
    assert (before == before[0]).all()
    assert after == pytest.approx(1 - before[0])
