"""An asynchronous hybrid as a program: its presets, its files, and a run that is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import hebbes
from hebbes.contracts.engine import EngineError
from hebbes.environments import trial
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.hybrids.core.replay import Replay
from hebbes.options.command_line import parse_config
from hebbes.policies.mlp import MLP
from hebbes.recording.metrics import METRICS, read_metrics
from hebbes.training.advice import TrainingError, find_advice
from hebbes.training.hybrid import TORCH_BYTES, Hybrid
from tests.python_process import ROOT
from tests.waiting import wait_until

TINY = {
    **{"environment": "Pendulum-v1", "algorithm": "aes_rl", "mean_scale": 500, "hidden_sizes": [16], "batch_size": 8},
    **{"start_steps": 300, "replay_size": 1000, "eval_every": 1000, "eval_episodes": 1, "test_episodes": 0, "seed": 3},
    **{"max_env_steps": 6000, "checkpoint_every": 2, "actor_workers": 3},
}
TIMED = {"env_steps_per_second", "seconds", "work_seconds", "job_wait_seconds"}


def start(options):
    """Starts the program."""
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value).strip("[]"))]
    return subprocess.Popen([sys.executable, ROOT / "train_hybrid.py", *flags], stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_as_its_log_says(tmp_path):
    log, copy = tmp_path / "log", tmp_path / "copy"
    options = {**TINY, "folder": str(tmp_path / "runs"), "completion_log": str(log), "threads": 2, "engine": "workers"}
    options["max_env_steps"] = 4000
    program = start(options)
    assert wait_until(lambda: log.exists() and len(log.read_text().splitlines()) > 25)
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    done = log.read_text().splitlines()
    (folder,) = (tmp_path / "runs" / "Pendulum-v1").iterdir()
    resumed = hebbes.train({"resume": str(folder)}, trainer="hybrid", quiet=True)
    assert log.read_text().splitlines()[: len(done)] == done
    shutil.copy(log, copy)
    changes = {"completion_log": str(copy), "threads": 1, "engine": "in_process", "folder": str(tmp_path / "again")}
    again = hebbes.train({**options, **changes}, trainer="hybrid", quiet=True)
    assert set(resumed.metrics) <= set(METRICS)
    for name in set(resumed.metrics) - TIMED:
        np.testing.assert_array_equal(resumed.metrics[name], again.metrics[name], name)
    assert copy.read_text() == log.read_text()
    assert np.array_equal(*(hebbes.load_policy(run.best).weights for run in (resumed, again)))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["aes_rl", "acem_rl", "one_plus_one_rl"])
def test_a_run_on_one_thread_that_nothing_interrupts_needs_no_log(algorithm, tmp_path):
    options = {name: value for name, value in TINY.items() if name != "mean_scale" or algorithm == "aes_rl"}
    options |= {"algorithm": algorithm, "threads": 1, "folder": str(tmp_path), "max_env_steps": 3000}
    first, second = (hebbes.train({**options, "run_name": name}, trainer="hybrid", quiet=True) for name in "ab")
    for name in set(first.metrics) - TIMED:
        np.testing.assert_array_equal(first.metrics[name], second.metrics[name], name)
    assert np.array_equal(*(hebbes.load_policy(run.folder / "latest.dat").weights for run in (first, second)))


@pytest.mark.slow
def test_a_stop_in_the_warm_up_keeps_what_was_done(tmp_path):
    budget = {"start_steps": 5000, "max_env_steps": 5200}
    options = {**TINY, **budget, "folder": str(tmp_path), "threads": 2, "run_name": "a"}
    process = start(options)
    metrics = tmp_path / "Pendulum-v1" / "a" / "metrics.csv"
    assert wait_until(lambda: metrics.exists() and len(metrics.read_text().splitlines()) > 4)
    process.terminate()
    assert process.wait(300) == 128 + signal.SIGTERM
    done = read_metrics(metrics)
    assert done["env_steps"][-1] < 5000 and np.isnan(done["mean_policy_return"]).all()
    resumed = hebbes.train({"resume": str(metrics.parent), "max_env_steps": 5600}, trainer="hybrid", quiet=True)
    saved = len(done["return"]) - 1  # the stop may come between the last row and the copy of its state
    np.testing.assert_array_equal(resumed.metrics["return"][:saved], done["return"][:saved])
    assert np.isfinite(resumed.metrics["mean_policy_return"][-1]) and resumed.metrics["replay_size"][-1] == 1000


class Fragile(gymnasium.Wrapper):
    """Ends its process at the next env step while a file exists."""

    def __init__(self, env, file):
        super().__init__(env)
        self.file = Path(file)

    def step(self, action):
        if self.file.exists():
            os._exit(3)
        return super().step(action)


@pytest.mark.slow
def test_after_a_job_has_lost_two_workers_the_run_goes_on_from_what_was_done(tmp_path):
    file, rows = tmp_path / "file", []
    options = {**TINY, "folder": str(tmp_path), "max_env_steps": 3000, "threads": 2, "engine": "workers"}
    options |= {"gymnasium_wrappers": [{f"{__name__}:Fragile": {"file": str(file)}}], "checkpoint_every": 100}

    def break_simulators(row):
        rows.append(row)
        if len(rows) == 6:
            file.touch()

    with pytest.raises(EngineError, match="a job has lost too many workers"):
        hebbes.train(options, trainer="hybrid", quiet=True, on_generation=break_simulators)
    file.unlink()
    (folder,) = (tmp_path / "Pendulum-v1").iterdir()
    saved, damaged = load_newest_checkpoint(folder / "checkpoint")
    assert (saved.progress.units, saved.progress.env_steps, damaged) == (len(rows), rows[-1]["env_steps"], [])
    assert len(rows) >= 6
    resumed = hebbes.train({"resume": str(folder), "import": [__name__]}, trainer="hybrid", quiet=True)
    assert resumed.metrics["return"][: len(rows)].tolist() == [row["return"] for row in rows]
    assert resumed.metrics["env_steps"][-1] >= 3000


@pytest.mark.parametrize(
    ("start_steps", "line"),
    [
        (100, "individual 10: 10 episodes in a row, in their first env step, failed: "),
        (0, "individual 1: the first env step of the mean policy failed: "),
    ],
)
def test_a_simulator_that_fails_at_once_ends_the_run_with_a_line(start_steps, line, tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "start_and_check", lambda env, spec: None)  # it would refuse this one
    script = {"environment": "tests.scripted:Scripted-v0", "env_kwargs": {"truncate_at": 4, "raise_at": 1}}
    options = {**TINY, **script, "folder": str(tmp_path), "start_steps": start_steps, "threads": 1}
    with pytest.raises(TrainingError, match=line) as stopped:
        hebbes.train(options, trainer="hybrid", quiet=True)
    assert find_advice(stopped.value) == "what helps      mend the environment, then {resume}"


def test_a_simulator_that_fails_later_costs_only_its_episode(tmp_path, capsys):
    script = {"environment": "tests.scripted:Scripted-v0", "env_kwargs": {"truncate_at": 4, "raise_at": 3}}
    options = {**TINY, **script, "folder": str(tmp_path), "start_steps": 6, "max_env_steps": 30, "threads": 1}
    run = hebbes.train(options, trainer="hybrid")
    assert np.isnan(run.metrics["return"]).all() and not np.nansum(run.metrics["update_norm"])
    said = capsys.readouterr().out
    assert "an individual failed: " in said and "the mean policy failed: " in said


@pytest.mark.slow
def test_a_run_of_two_seeds_has_one_log(tmp_path):
    log, options = tmp_path / "log", {**TINY, "folder": str(tmp_path), "max_env_steps": 1000, "threads": 1, "seeds": 2}
    process = start({**options, "completion_log": str(log), "run_name": "a"})
    assert process.wait(300) == 0
    assert {json.loads(line)["seed"] for line in log.read_text().splitlines()} == {3, 4}


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


@pytest.mark.parametrize(
    ("flags", "worker_jobs"),
    [
        ("td3", 0),
        ("cem_rl", 0),
        ("p_cem_rl", 0),
        ("p_cem_rl --parallel_critic", 1),
        ("aes_rl --actor_workers 3", 4),
        ("one_plus_one_rl --rl_share 0", 0),
    ],
)
def test_the_memory_check_counts_pytorch_where_workers_train(flags, worker_jobs):
    policy = MLP((11,), 3, hidden_sizes=(8,), activation="tanh", bias=True)
    words = ["--environment", "Hopper-v5", "--algorithm", *flags.split()]
    size = Hybrid.measure_search(parse_config("hybrid", words, "test"), policy)
    assert (size.worker_jobs, size.worker_bytes) == (worker_jobs, TORCH_BYTES)
