"""Programs that train on a test cluster."""

import os
import shutil
import subprocess
import sys

from hebbes.files.policy_file import read_policy_file
from tests.python_process import ROOT

SHORT = (
    *("--environment", "CartPole-v1", "--backend", "gymnasium", "--popsize", "8", "--generations", "4"),
    *("--test_episodes", "2", "--eval_episodes", "1", "--max_episode_steps", "20", "--run_name", "run"),
)


def start_training(*arguments, cwd=ROOT, script="train_static.py", stdout=subprocess.PIPE, **environment):
    return subprocess.Popen(
        [sys.executable, script, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "GIT_DIR": os.devnull, **environment},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


def find_run(folder):
    return folder / "CartPole-v1" / "run"


def read_weights(folder):
    return read_policy_file(find_run(folder) / "latest.dat").weights.tobytes()


def copy_sources(folder, file, old, new):
    """A folder with a copy of hebbes, in which a line of this file differs."""
    shutil.copytree(ROOT / "hebbes", folder / "hebbes")  # with its compiled kernels
    shutil.copy(ROOT / "train_static.py", folder)
    changed = folder / "hebbes" / file
    assert old in changed.read_text()
    changed.write_text(changed.read_text().replace(old, new, 1))
    return folder
