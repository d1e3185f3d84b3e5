"""A run that is told to stop saves what it has, leaves no process behind, and exits with 128 + signal."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from training.policy_file import load_policy

ROOT = Path(__file__).parent.parent
SCRIPTED = ["--environment", "Scripted-v0", "--import", "tests.scripted", "--env_kwargs", "{truncate_at: 50}"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("engine", ["in_process", "workers"])
def test_a_signal_ends_the_run_cleanly(number, engine, tmp_path):
    flags = [*SCRIPTED, "--engine", engine, "--threads", "2", "--popsize", "8", "--generations", "1000000"]
    flags += ["--save_every", "1000000", "--folder", str(tmp_path), "--run_name", "a"]
    command = [sys.executable, "train_static.py", *flags]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    metrics = tmp_path / "Scripted-v0" / "a" / "metrics.csv"
    while not (metrics.exists() and metrics.read_text().count("\n") > 5):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)  # the pipes close when no worker holds them any more
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    assert str(metrics) in out
    assert load_policy(metrics.with_name("latest.dat"), ["tests.scripted"]).provenance["generation"] > 4
