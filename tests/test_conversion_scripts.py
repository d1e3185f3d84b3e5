"""The scripts that make policy files of others, as a user runs them."""

import json

import numpy as np
import pytest
import torch
from test_scripts import TINY, run


@pytest.mark.slow
def test_coefficients_of_the_reference_are_imported_merged_and_evaluated(tmp_path, refusal):
    torch.save(np.random.default_rng(0).normal(size=(672, 5)), tmp_path / "hebb.dat")
    flags = ["--path_hebb", tmp_path / "hebb.dat", "--environment", "CartPole-v1"]
    done = run("evaluate_hebbian.py", *flags, "--hebb_rule", "ABCD_lr")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "python -m hebbes import --path_hebb" in done.stderr
    assert "unknown option --path_hebb" in refusal("evaluate_static.py", *flags)
    imported, merged = tmp_path / "imported.dat", tmp_path / "merged.dat"
    flags += ["--hidden_sizes", "32", "16"]
    done = run("-m", "hebbes", "import", *flags, "--hebb_rule", "ABCD_lr", "--output", imported)
    assert done.returncode == 0, done.stderr
    done = run("-m", "hebbes", "merge", "--path_weights", imported, "--num_rules", "8", "--output", merged)
    assert done.returncode == 0, done.stderr
    assert "parameters      3,360 before, 40 after" in done.stdout
    (command,) = (line.split()[3:] for line in done.stdout.splitlines() if line.startswith("to go on"))
    done = run(*command[1:], "--folder", tmp_path, "--run_name", "a", *TINY)
    assert done.returncode == 0, done.stderr
    best = tmp_path / "CartPole-v1" / "a" / "best.dat"
    done = run("evaluate_hebbian.py", "--path_weights", merged, best, "--episodes", 2, "--threads", 1, "--json")
    assert [len(file["returns"][0]) for file in json.loads(done.stdout)["files"]] == [2, 2], done.stderr
