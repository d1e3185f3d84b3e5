"""The scripts that read policy files, as a user runs them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from test_scripts import ROOT, TINY, run

from policies.hebbian import Hebbian
from rollouts.environments import EnvironmentSpec
from training.policy_file import SavedPolicy, save_policy


def test_coefficients_of_the_reference_are_imported_merged_and_evaluated(tmp_path, refusal):
    torch.save(np.random.default_rng(0).normal(size=(672, 5)), tmp_path / "hebb.dat")
    flags = ["--path_hebb", tmp_path / "hebb.dat", "--environment", "CartPole-v1"]
    done = run("evaluate_hebbian.py", *flags, "--hebb_rule", "ABCD_lr")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "python import_reference.py --path_hebb" in done.stderr
    assert "unknown option --path_hebb" in refusal("evaluate_static.py", *flags)
    imported, merged = tmp_path / "imported.dat", tmp_path / "merged.dat"
    done = run("import_reference.py", *flags, "--hebb_rule", "ABCD_lr", "--output", imported)
    assert done.returncode == 0, done.stderr
    done = run("merge_rules.py", "--path_weights", imported, "--num_rules", "8", "--output", merged)
    assert done.returncode == 0, done.stderr
    assert "parameters      3,360 before, 40 after" in done.stdout
    (command,) = (line.split()[3:] for line in done.stdout.splitlines() if line.startswith("to go on"))
    done = run(*command[1:], "--folder", tmp_path, "--run_name", "a", *TINY)
    assert done.returncode == 0, done.stderr
    best = tmp_path / "CartPole-v1" / "a" / "best.dat"
    done = run("evaluate_hebbian.py", "--path_weights", merged, best, "--episodes", 2, "--json")
    assert [len(file["returns"][0]) for file in json.loads(done.stdout)["files"]] == [2, 2], done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    ("script", "flags"),
    [
        ("merge_rules.py", ["--num_rules", "2", "--output", "merged.dat"]),
        ("evaluate_hebbian.py", ["--episodes", "1", "--threads", "1"]),
    ],
)
def test_results_that_standard_output_does_not_take_end_in_one_line(script, flags, tmp_path):
    policy = Hebbian((4,), 2, hidden_sizes=(3,))
    weights = policy.initial_params(np.random.default_rng(0))
    saved = SavedPolicy(policy, "hebbian", weights, {}, "argmax", EnvironmentSpec("CartPole-v1", "gymnasium"), {})
    save_policy(tmp_path / "a.dat", saved)
    command = [sys.executable, ROOT / script, "--path_weights", "a.dat", *flags]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "stopped: [Errno 28] No space left on device\n")
