"""A job that `ray job submit` starts from a folder, whose files reach the nodes."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from hebbes.recording.metrics import read_metrics
from tests.cluster.conftest import starting_cluster
from tests.cluster.ray_programs import SHORT, copy_sources, find_run, finish, read_weights, start_training

pytestmark = pytest.mark.ray


def submit(cluster, folder, *arguments):
    """What has become of the job. The dashboard refuses jobs until the agent of its node is there."""
    command = [Path(sys.executable).with_name("ray"), "job", "submit", "--address", f"http://{cluster.webui_url}"]
    command += ["--working-dir", folder, "--", sys.executable, "train_static.py", *map(str, arguments)]
    until = time.monotonic() + 60
    while True:
        done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, timeout=300)
        if "No available agent" not in done.stderr or time.monotonic() > until:
            return done
        time.sleep(0.5)


def test_a_job_computes_with_the_files_that_were_sent(token, tmp_path):
    """On one node, because several nodes of one machine would have one folder for the files, which each removes."""
    old = "rewards = env_step.rewards.astype(np.float64, copy=False)"
    folder = copy_sources(tmp_path / "sent", "execution/episode.py", old, old + " * 3.0")
    with starting_cluster(token, num_cpus=2, include_dashboard=True) as cluster:
        done = submit(cluster, folder, *SHORT, "--folder", tmp_path / "ray", "--engine", "ray")
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_metrics(find_run(tmp_path / "ray") / "metrics.csv")["return_max"][-1] == 3 * 20
    finish(start_training(*SHORT, "--folder", tmp_path / "alone", "--threads", "1", cwd=folder))
    assert read_weights(tmp_path / "ray") == read_weights(tmp_path / "alone")
