"""An asynchronous hybrid as a program: its presets, its files, and a run that is killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import hebbes
from hebbes.hybrids.core.replay import Replay
from hebbes.options.command_line import parse_config
from hebbes.policies.mlp import MLP
from hebbes.recording.metrics import METRICS
from hebbes.training.hybrid import Hybrid

ROOT = Path(__file__).parent.parent.parent
TINY = {
    **{"environment": "Pendulum-v1", "algorithm": "aes_rl", "mean_scale": 500, "hidden_sizes": [16], "batch_size": 8},
    **{"start_steps": 300, "replay_size": 1000, "eval_every": 1000, "eval_episodes": 1, "test_episodes": 0, "seed": 3},
    **{"max_env_steps": 6000, "checkpoint_every": 2, "actor_workers": 3},
}
TIMED = {"env_steps_per_second", "seconds", "job_wait_seconds"}


def wait_until(is_so, seconds=120):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_run_that_is_killed_goes_on_as_its_log_says(tmp_path):
    log, copy = tmp_path / "log", tmp_path / "copy"
    options = {**TINY, "folder": str(tmp_path / "runs"), "completion_log": str(log), "threads": 2, "engine": "workers"}
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value).strip("[]"))]
    program = subprocess.Popen([sys.executable, ROOT / "train_hybrid.py", *flags], stdout=subprocess.DEVNULL)
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) > 40)
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    done = log.read_text().splitlines()
    (folder,) = (tmp_path / "runs" / "Pendulum-v1").iterdir()
    resumed = hebbes.train({"resume": str(folder)}, trainer="hybrid", quiet=True)
    assert log.read_text().splitlines()[: len(done)] == done
    shutil.copy(log, copy)
    changes = {"completion_log": str(copy), "threads": 1, "engine": "in_process", "folder": str(tmp_path / "again")}
    again = hebbes.train({**TINY, **changes}, trainer="hybrid", quiet=True)
    assert set(resumed.metrics) <= set(METRICS)
    for name in set(resumed.metrics) - TIMED:
        np.testing.assert_array_equal(resumed.metrics[name], again.metrics[name], name)
    assert copy.read_text() == log.read_text()
    assert np.array_equal(*(hebbes.load_policy(run.best).weights for run in (resumed, again)))


def test_the_memory_check_counts_the_slack():
    flags = ["--environment", "Hopper-v5", "--replay_size", "1001"]
    policy = MLP((11,), 3, hidden_sizes=(8,), activation="tanh", bias=True)
    sizes = [
        Hybrid.measure_search(parse_config("hybrid", [*flags, "--algorithm", name], "test"), policy)
        for name in ("aes_rl", "td3")
    ]
    row = 4 * (2 * 11 + 3 + 2)
    assert [size.count_segment_bytes() for size in sizes] == [(1001 + 250) * row, 1001 * row]
    assert Replay(1001, 11, 3, slack=250)._rows.nbytes == sizes[0].count_segment_bytes()
