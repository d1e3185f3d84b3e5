"""What standard output does not take, be a disk full or a pipe closed, costs one line, status 1 and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.files.policy_file import SavedPolicy, read_policy_file, save_policy
from hebbes.policies.hebbian import Hebbian
from tests.python_process import ROOT

pytestmark = pytest.mark.slow

NO_DEVICE = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")


def closed_pipe():
    """The end to write to of a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    return write


FROM_HERE = {**os.environ, "PYTHONPATH": str(ROOT)}


def called(command):
    """A script of the root, or `-m hebbes`, as it is called from another folder."""
    return [sys.executable, *(command if command[0] == "-m" else [ROOT / command[0], *command[1:]])]


FULL = pytest.param(lambda: os.open("/dev/full", os.O_WRONLY), "No space left on device", marks=NO_DEVICE)
CLOSED = (closed_pipe, "Broken pipe")


@pytest.fixture
def policy_file(tmp_path):
    """A plastic policy for CartPole that has learned nothing."""
    policy = Hebbian((4,), 2, hidden_sizes=(3,))
    weights = policy.initial_params(np.random.default_rng(0))
    saved = SavedPolicy(policy, "hebbian", weights, {}, "argmax", EnvironmentSpec("CartPole-v1", "gymnasium"), {})
    save_policy(tmp_path / "a.dat", saved)
    return tmp_path / "a.dat"


@pytest.mark.parametrize(("output", "reason"), [FULL, CLOSED])
@pytest.mark.parametrize(
    ("command", "what", "made"),
    [
        (
            ["-m", "hebbes", "merge", "--path_weights", "a.dat", "--num_rules", "2", "--output", "b.dat"],
            "output",
            "b.dat",
        ),
        (
            ["evaluate_hebbian.py", "--path_weights", "a.dat", "--episodes", "1", "--threads", "1", "--plots", "p"],
            "results",
            "p/1_a_weights.png",
        ),
        (["train_static.py", "--environment", "CartPole-v1", "--print_config"], "output", None),
        (["-m", "hebbes", "--help"], "output", None),
    ],
)
def test_lost_output_is_one_line_and_status_1(output, reason, command, what, made, policy_file, tmp_path):
    stdout = output()
    try:
        done = subprocess.run(
            called(command), stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=300, cwd=tmp_path, env=FROM_HERE
        )
    finally:
        os.close(stdout)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("plot ")]
    assert (done.returncode, lines) == (1, [f"no {what}: {reason}"])
    if made is not None:
        assert (tmp_path / made).exists()
    if made == "b.dat":
        assert read_policy_file(tmp_path / made).policy.num_rules == 2


@NO_DEVICE
def test_a_mistake_has_status_2_where_standard_error_is_full():
    refused = called(["train_static.py", "--popsize", "abc"])
    assert subprocess.run(["sh", "-c", 'exec "$@" 2>/dev/full', "sh", *refused], timeout=300).returncode == 2


@pytest.mark.parametrize("output", [pytest.param(FULL.values[0], marks=NO_DEVICE), CLOSED[0]])
def test_a_run_that_nobody_can_read_goes_on_to_its_end(output, tmp_path):
    flags = ["--environment", "CartPole-v1", "--generations", "3", "--popsize", "4", "--threads", "1"]
    stdout = output()
    try:
        done = subprocess.run(
            called(["train_static.py", *flags, "--folder", str(tmp_path), "--run_name", "a", "--test_episodes", "1"]),
            **{"stdout": stdout, "stderr": subprocess.PIPE, "text": True, "timeout": 120, "env": FROM_HERE},
        )
    finally:
        os.close(stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert read_policy_file(tmp_path / "CartPole-v1" / "a" / "latest.dat").provenance["generation"] == 3
    assert (tmp_path / "CartPole-v1" / "a" / "test.json").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "hebbes", "merge", "--path_weights", "a.dat", "--num_rules", "2", "--output", "b.dat"],
        ["evaluate_hebbian.py", "--path_weights", "a.dat", "--episodes", "1", "--threads", "1"],
    ],
)
def test_a_program_runs_without_standard_streams(command, policy_file, tmp_path):
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    assert subprocess.run([*closed, *called(command)], timeout=300, cwd=tmp_path, env=FROM_HERE).returncode == 0
    assert (tmp_path / "b.dat").is_file() == ("--output" in command)


@pytest.mark.slow
def test_simulators_whose_packages_start_programs_run_without_standard_error(tmp_path):
    flags = ["--environment", "Hopper-v5", "--folder", str(tmp_path), "--generations", "1", "--popsize", "4"]
    flags += ["--max_episode_steps", "3", "--test_episodes", "0", "--threads", "1", "--backend", "gymnasium"]
    closed = ["sh", "-c", 'exec "$@" 2>&-', "sh"]
    assert subprocess.run([*closed, *called(["train_static.py", *flags])], timeout=300, env=FROM_HERE).returncode == 0


def test_letters_that_the_output_does_not_have_lose_no_results(policy_file):
    named = policy_file.rename(policy_file.with_name("\u8d70.dat"))
    command = called(["evaluate_hebbian.py", "--path_weights", str(named), "--episodes", "1", "--threads", "1"])
    options = {"env": {**FROM_HERE, "PYTHONIOENCODING": "ascii"}, "timeout": 120, "capture_output": True}
    done = subprocess.run(command, **options)
    assert done.returncode == 0
    assert rb"\u8d70.dat" in done.stdout and b"mean" in done.stdout
