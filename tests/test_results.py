"""`benchmarks/results.py`: the runs of a study are trained, stopped and gone on with, and their tests are the table."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean

import pytest

ROOT = Path(__file__).parents[1]
SMALL = """
import sys
from benchmarks import results
options = {"generations": "%s", "population_size": "4", "threads": "1", "test_episodes": "2", "backend": "gymnasium"}
methods = {"cem": {"strategy": "cem"}, "ga": {"strategy": "ga"}}
results.STUDIES = {"small": results.Study("train_static.py", ("CartPole-v1",), methods, options, range(2), 0.5)}
results.main()
"""


def start(folder, generations, *flags):
    command = [sys.executable, "-c", SMALL % generations, "small", "--folder", str(folder), "--jobs", "2", *flags]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def find_runs(folder):
    return sorted(path.parent for path in folder.glob("small/CartPole-v1/*/config.yaml"))


@pytest.mark.slow
def test_a_study_goes_on_where_it_was_stopped_and_is_done_once(tmp_path):
    stopped = start(tmp_path, 30)
    assert stopped.stdout.readline() == "4 of 4 runs are left, 0.0 hours of one core, 0.0 hours with 2 at once\n"
    while len(list(tmp_path.glob("small/CartPole-v1/*/metrics.csv"))) < 2:
        assert stopped.poll() is None
        time.sleep(0.05)
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=60)
    assert stopped.returncode == 128 + signal.SIGTERM
    begun = find_runs(tmp_path)
    assert 2 <= len(begun) < 4 and not (begun[0] / "test.json").exists()
    again = start(tmp_path, 30)
    table, _ = again.communicate(timeout=300)
    assert again.returncode == 0
    scores = {run.name: fmean(json.loads((run / "test.json").read_text())["returns"]) for run in find_runs(tmp_path)}
    assert list(scores) == ["cem-seed0", "cem-seed1", "ga-seed0", "ga-seed1"]
    for name in ("cem", "ga"):
        first, second = (scores[f"{name}-seed{seed}"] for seed in (0, 1))
        (row,) = re.findall(rf"^CartPole-v1 +{name} .*$", table, re.MULTILINE)
        cells = f"CartPole-v1 {name} 2 of 2 {(first + second) / 2:.0f} {first:.0f} {second:.0f}"
        assert row.split() == cells.split()
    third = start(tmp_path, 30)
    assert "begins" not in third.communicate(timeout=60)[0] and third.returncode == 0


@pytest.mark.slow
def test_a_run_that_fails_is_said_and_the_others_go_on(tmp_path):
    (tmp_path / "small" / "CartPole-v1").mkdir(parents=True)
    (tmp_path / "small" / "CartPole-v1" / "cem-seed0").touch()  # where a folder should be
    failed = start(tmp_path, 1)
    said, _ = failed.communicate(timeout=300)
    assert failed.returncode == 1
    assert re.search(r"^status 2 .*cem-seed0$", said, re.MULTILINE)
    assert len(find_runs(tmp_path)) == 3 and " 1 of 2 " in said


@pytest.mark.parametrize("arguments", [("large",), ("small", "--jobs", "0")])
def test_bad_arguments_are_refused(tmp_path, arguments):
    command = [sys.executable, "-c", SMALL % 1, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and arguments[-1] in done.stderr
