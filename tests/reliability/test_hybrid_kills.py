"""A hybrid's run, with its replay and optimizers, ends with the same bits after kills."""

import os
import subprocess
import sys
import time

import pytest
from training_process import check_files

from tests.python_process import ROOT
from tests.training.scripted_runs import read_outcome

pytestmark = pytest.mark.slow

TINY = {
    **{"environment": "Pendulum-v1", "hidden_sizes": 16, "start_steps": 400, "batch_size": 16, "replay_size": 1500},
    **{"eval_every": 400, "eval_episodes": 1, "test_episodes": 0, "checkpoint_every": 1, "threads": 1},
    **{"run_name": "a", "max_env_steps": 2600},
}


def start(options):
    flags = [f"--{name}={value}" for name, value in options.items()]
    environment = {**os.environ, "GIT_DIR": os.devnull}  # a commit made meanwhile cannot make two runs differ
    command = [sys.executable, "train_hybrid.py", *flags]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process):
    assert process.wait(300) == 0, process.stderr.read().decode()


def count_rows(metrics):
    try:
        return metrics.read_text().count("\n") - 1
    except FileNotFoundError:  # not there yet, or removed by a resume from unit 0
        return 0


@pytest.mark.parametrize("algorithm", ["td3", "cem_rl"])
def test_kills_change_nothing(algorithm, tmp_path):
    options = {**TINY, "algorithm": algorithm}
    if algorithm == "cem_rl":
        options |= {"population_size": 4, "rl_population": 2}
    folders = [tmp_path / name / "Pendulum-v1" / "a" for name in ("whole", "killed")]
    finish(start({**options, "folder": tmp_path / "whole"}))
    units, first = count_rows(folders[0] / "metrics.csv"), {**options, "folder": tmp_path / "killed"}
    for rows in (units // 4, units // 2, 3 * units // 4):
        process = start(first)
        while count_rows(folders[1] / "metrics.csv") < rows:
            assert process.poll() is None, process.stderr.read().decode()
            time.sleep(0.002)
        process.kill()
        process.wait()
        first = {"resume": folders[1]}
    finish(start(first))
    check_files(folders[1])
    whole, killed = map(read_outcome, folders)
    assert killed == whole
