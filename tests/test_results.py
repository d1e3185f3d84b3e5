"""`benchmarks/results.py`: the runs of a study are trained, stopped and gone on with, and their tests are the table."""

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import recorded_runs, results
from benchmarks.planned_runs import PlannedRun, compute_mean, plan
from benchmarks.recorded_runs import COLUMNS, RecordedRuns
from benchmarks.results import Trainings, find_runs_left
from benchmarks.studies import STUDIES, Method, Study
from hebbes.files.folder_lock import lock_folder
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import resolve_config
from hebbes.options.texts import split_arguments
from hebbes.statistics.table import format_number
from tests.python_process import ROOT, run_python

SMALL = """
import sys
from benchmarks import results
from benchmarks.studies import Method, Study
options = {"generations": "%s", "population_size": "4", "threads": "1", "test_episodes": "2", "backend": "gymnasium"}
options |= {"max_episode_steps": "100", "eval_episodes": "2"}
methods = {name: Method("train_static.py", {"strategy": name}) for name in ("cem", "ga")}
results.STUDIES = {"small": Study({"CartPole-v1": 0.5}, methods, options, range(2))}
results.main()
"""
SHORT = {"start_steps": "100", "max_env_steps": "300", "threads": "1", "test_episodes": "2", "backend": "gymnasium"}
MERGED = """
from benchmarks import planned_runs, results
from benchmarks.studies import Method, Study
methods = {"plastic": Method("train_hebbian.py"), "merged": Method("train_hebbian.py", merged_from="plastic")}
options = {"generations": "1", "population_size": "4", "max_episode_steps": "60", "test_episodes": "0", "threads": "1"}
bodies = ("none", "left")
planned_runs.MORPHOLOGY_EPISODES = 2
results.STUDIES = {"small": Study({"AntBulletEnv-v0": 0.5}, methods, options, (0,), bodies)}
results.main()
"""


def start(folder, generations, *flags, **options):
    command = [sys.executable, "-c", SMALL % generations, "small", "--folder", str(folder), "--jobs", "2", *flags]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)


def find_runs(folder):
    return sorted(path.parent for path in folder.glob("small/CartPole-v1/*/config.yaml"))


@pytest.mark.slow
def test_a_study_goes_on_where_it_was_stopped_and_is_done_once(tmp_path):
    stopped = start(tmp_path, 200)
    assert stopped.stdout.readline() == "4 of 4 runs are left, 0.0 hours of one core, 0.0 hours with 2 at once\n"
    while len(list(tmp_path.glob("small/CartPole-v1/*/metrics.csv"))) < 2:
        assert stopped.poll() is None
        time.sleep(0.05)
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=300)
    assert stopped.returncode == 128 + signal.SIGTERM
    begun = find_runs(tmp_path)
    assert 2 <= len(begun) < 4
    again = start(tmp_path, 200)
    table, _ = again.communicate(timeout=300)
    assert again.returncode == 0
    scores = {run.name: fmean(json.loads((run / "test.json").read_text())["returns"]) for run in find_runs(tmp_path)}
    assert list(scores) == ["cem-seed0", "cem-seed1", "ga-seed0", "ga-seed1"]
    for name in ("cem", "ga"):
        first, second = (scores[f"{name}-seed{seed}"] for seed in (0, 1))
        (row,) = re.findall(rf"^CartPole-v1 +{name} .*$", table, re.MULTILINE)
        middle = (first + second) / 2  # median and IQM
        cells = f"CartPole-v1 {name} 2 of 2 {' '.join(map(format_number, (middle, middle, first, second)))}"
        assert row.split() == cells.split()
    other = start(tmp_path, 201, "--table")
    assert other.communicate(timeout=300)[0] == "" and other.returncode == 2
    third = start(tmp_path, 200)
    assert "begins" not in third.communicate(timeout=300)[0] and third.returncode == 0
    (find_runs(tmp_path)[1] / "test.json").write_text('{"returns": [1')
    damaged = start(tmp_path, 200, stderr=subprocess.PIPE)
    assert "cem-seed1/test.json is damaged: remove it" in damaged.communicate(timeout=300)[1].splitlines()[-1]
    (find_runs(tmp_path)[1] / "test.json").unlink()
    told = (find_runs(tmp_path)[0] / "command.txt").read_text()
    (find_runs(tmp_path)[0] / "command.txt").write_text("")
    damaged = start(tmp_path, 200, stderr=subprocess.PIPE)
    assert "command.txt is damaged: move the folder away" in damaged.communicate(timeout=300)[1].splitlines()[-1]
    (find_runs(tmp_path)[0] / "command.txt").write_text(told)
    assert start(tmp_path, 200).wait(timeout=300) == 0
    (find_runs(tmp_path)[2] / "test.json").unlink()  # as after a stop in the test
    tested = start(tmp_path, 200)
    assert "2 of 2" in tested.communicate(timeout=300)[0] and tested.returncode == 0
    assert (find_runs(tmp_path)[2] / "test.json").exists()


@pytest.mark.slow
def test_a_run_that_fails_is_said_and_the_others_go_on(tmp_path):
    (tmp_path / "small" / "CartPole-v1").mkdir(parents=True)
    (tmp_path / "small" / "CartPole-v1" / "cem-seed0").touch()  # where a folder should be
    failed = start(tmp_path, 1)
    said, _ = failed.communicate(timeout=300)
    assert failed.returncode == 1
    assert re.search(r"^status 2 .*cem-seed0, see cem-seed0\.log$", said, re.MULTILINE)
    assert len(find_runs(tmp_path)) == 3 and " 1 of 2 " in said


@pytest.mark.slow
def test_merged_rules_are_trained_on_and_played_in_every_morphology(tmp_path):
    command = ["-c", MERGED, "small", "--folder", tmp_path, "--jobs", "2"]
    done = run_python(*command, timeout=600)
    folder = tmp_path / "small" / "AntBulletEnv-v0"
    plastic, merged = (read_policy_file(folder / f"{name}-seed0" / "best.dat") for name in ("plastic", "merged"))
    assert (plastic.weights.size, merged.weights.size) == (61440, 160)
    table = read_policy_file(folder / "merged-seed0.merged.dat").buffers["rule_table.dense1"]
    assert np.array_equal(merged.buffers["rule_table.dense1"], table)
    again = run_python(*command)
    assert again.stdout == done.stdout[done.stdout.rindex("environment  ") :]
    (folder / "merged-seed0" / "morphologies.json").unlink()
    tested = run_python(*command)
    assert "nothing to do: " in (folder / "merged-seed0.log").read_text()
    assert f"tests    {folder / 'merged-seed0'}\n" in tested.stdout
    for name in ("plastic", "merged"):
        played = json.loads((folder / f"{name}-seed0" / "morphologies.json").read_text())["files"]
        assert [(each["morphology"], len(each["returns"][0])) for each in played] == [("none", 2), ("left", 2)]
        for each in played:
            mean = format_number(each["mean"])
            row = f"AntBulletEnv-v0 {each['morphology']} {name} 1 of 1 {mean} {mean} {mean}"
            assert row.split() in [line.split() for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_run_whose_source_fails_is_not_begun(tmp_path):
    (tmp_path / "small" / "AntBulletEnv-v0").mkdir(parents=True)
    (tmp_path / "small" / "AntBulletEnv-v0" / "plastic-seed0").touch()  # where a folder should be
    done = run_python("-c", MERGED, "small", "--folder", tmp_path, "--jobs", "2", status=1)
    assert "status 2" in done.stdout and "merges" not in done.stdout and "merged-seed0" not in done.stdout


@pytest.mark.parametrize("study", STUDIES)
def test_the_programs_take_the_options_of_every_run(tmp_path, study):
    runs = plan(STUDIES[study], tmp_path)
    assert len({run.folder for run in runs}) == len(runs)
    first = {(run.environment, run.method): run for run in reversed(runs)}
    for run in first.values():
        words = [word for word in run.command[2:] if not word.endswith(".merged.dat") and word != "--init_from"]
        trainer = Path(run.command[1]).stem.removeprefix("train_")
        assert resolve_config(trainer, split_arguments(words)).as_options()["environment"] == run.environment


def make_run(folder, line):
    run = plan(STUDIES["presets"], folder)[0]
    run.folder.mkdir(parents=True)
    (run.folder / "command.txt").write_text(line)
    return run


def test_runs_with_other_options_are_refused(tmp_path):
    line = "python train_static.py --environment HalfCheetah-v5 --test_episodes 100 --threads 1 --seed 40"
    make_run(tmp_path / "same", line).check()
    other = make_run(tmp_path / "other", line.replace("100", "20"))
    with pytest.raises(ValueError, match=r"HalfCheetah-v5/preset-seed40 is of .*'20'.* and the study has .*'100'"):
        other.check()


@pytest.mark.slow
def test_what_is_recorded_is_not_repeated_on_another_machine(tmp_path):
    record = tmp_path / "small.csv"
    here, there, third = (("--folder", str(tmp_path / name), "--recorded", str(record)) for name in ("a", "b", "c"))
    assert start(tmp_path / "a", 1).wait(timeout=300) == 0  # its runs are recorded by the next command
    begun = start(tmp_path / "a", 1, *here)
    table = begun.communicate(timeout=300)[0]
    rows = list(csv.DictReader(record.open()))
    assert begun.returncode == 0 and len(rows) == 4
    (again,) = [row for row in rows if row["run"] == "ga-seed1"]
    returns = json.loads((tmp_path / "a" / "small" / "CartPole-v1" / "ga-seed1" / "test.json").read_text())["returns"]
    assert float(again["mean_return"]) == fmean(returns) and "--strategy ga" in again["options"]
    best = tmp_path / "a" / "small" / "CartPole-v1" / "ga-seed1" / "best.dat"
    assert again["commit"] == read_policy_file(best).provenance["hebbes"]
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line for line in lines if "ga-seed1" not in line))
    other = start(tmp_path / "b", 1, *there)
    said = other.communicate(timeout=300)[0]
    assert other.returncode == 0 and re.findall(r"begins .*/(.*)", said) == ["ga-seed1"]
    assert said.endswith(table) and record.read_text().splitlines()[-1].startswith("CartPole-v1,ga-seed1,CartPole-v1,")
    assert len(find_runs(tmp_path / "b")) == 1
    changed = start(tmp_path / "c", 2, *third, stderr=subprocess.PIPE)
    assert "cem-seed0 had --backend gymnasium" in changed.communicate(timeout=300)[1] and changed.returncode == 2


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "HEADER\nCartPole-v1,cem-seed0,CartPole-v1,many,,\n", "HEADER\n1,2\n"]
)
def test_a_damaged_record_is_refused(tmp_path, text):
    path = tmp_path / "small.csv"
    path.write_text(text.replace("HEADER", ",".join(COLUMNS)))
    with pytest.raises(ValueError, match=r"--recorded .*small.csv cannot be read"):
        RecordedRuns(path)


def test_a_run_whose_source_is_elsewhere_needs_its_policy_here(tmp_path):
    runs = plan(STUDIES["ant_damage"], tmp_path)
    plastic, merged = (next(run for run in runs if run.method == name) for name in ("plastic", "merged"))
    record = tmp_path / "ant.csv"
    options = shlex.join(word for item in sorted(plastic.options.items()) for word in item)
    row = (plastic.environment, plastic.folder.name, "AntBulletEnv-v0 none", "1.5", options, "", "abc")
    record.write_text("\n".join([",".join(COLUMNS), ",".join(row), ""]))
    recorded = RecordedRuns(record)
    assert recorded.find_scores(plastic) == {"AntBulletEnv-v0 none": 1.5}
    assert find_runs_left([plastic], recorded) == []
    with pytest.raises(ValueError, match="plastic-seed20 is recorded and not here: copy it, merged-seed20 begins"):
        find_runs_left([plastic, merged], recorded)
    merged.merged.parent.mkdir(parents=True)
    merged.merged.touch()
    assert find_runs_left([plastic, merged], recorded) == [merged]
    assert find_runs_left([plastic, merged], RecordedRuns(None)) == [plastic, merged]


def test_records_that_are_damaged_meanwhile_fail_their_run_alone(tmp_path, capsys, monkeypatch):
    run = SimpleNamespace(environment="Swimmer-v5", folder=tmp_path / "runs" / "a", source=None, is_done=True)
    recorded = RecordedRuns(tmp_path / "swimmer.csv")
    (tmp_path / "swimmer.csv").write_text("<<<<<<< HEAD\n")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert not Trainings(1, recorded).do([run])
    assert re.fullmatch(r"failed   .*runs/a: --recorded .*swimmer.csv cannot be read: .*\n", capsys.readouterr().out)


def test_the_device_of_hybrids_is_told_and_not_compared(tmp_path):
    (hybrid, *_), (static, *_) = (plan(STUDIES[name], tmp_path, "cuda") for name in ("hybrids", "presets"))
    assert list(hybrid.find_training()[-2:]) == ["--device", "cuda"] and "--device" not in static.find_training()
    assert hybrid.options == plan(STUDIES["hybrids"], tmp_path)[0].options
    hybrid.folder.mkdir(parents=True)
    assert list(hybrid.find_training()[2:]) == ["--resume", str(hybrid.folder), "--device", "cuda"]


@pytest.mark.slow
def test_the_device_of_a_hybrid_is_recorded(tmp_path):
    study = Study({"Pendulum-v1": 0.5}, {"td3": Method("train_hybrid.py", {"algorithm": "td3"})}, SHORT, (0,))
    (run,) = plan(study, tmp_path)
    subprocess.run(run.find_training(), cwd=ROOT, check=True, timeout=300)
    record = tmp_path / "record.csv"
    RecordedRuns(record).add(run)
    (row,) = csv.DictReader(record.open())
    assert row["device"] == "cpu" and float(row["mean_return"]) == run.read_scores()["Pendulum-v1"]


def test_two_programs_may_record_in_one_file(tmp_path, monkeypatch):
    runs = plan(STUDIES["ant_damage"], tmp_path)[:3]
    monkeypatch.setattr(PlannedRun, "read_scores", lambda run: {"case": 1.5})
    saved = SimpleNamespace(provenance={"options": {}, "hebbes": "abc"})
    monkeypatch.setattr(recorded_runs, "read_policy_file", lambda path: saved)
    one, other = (RecordedRuns(tmp_path / "all.csv") for _ in range(2))
    lock = lock_folder(tmp_path)  # as the program does if it is the study's own
    for recorded, run in zip((one, other, one), runs, strict=True):
        recorded.add(run)
    assert [row["run"] for row in csv.DictReader((tmp_path / "all.csv").open())] == [run.folder.name for run in runs]
    os.close(lock)


def test_a_failed_episode_leaves_no_mean():
    assert np.isnan(compute_mean([1.0, None])) and compute_mean([1.0, 2.0]) == 1.5


def test_two_do_not_work_on_one_study(tmp_path):
    (tmp_path / "small").mkdir()
    descriptor = lock_folder(tmp_path / "small")
    refused = start(tmp_path, 1, stderr=subprocess.PIPE)
    said = refused.communicate(timeout=300)[1]
    os.close(descriptor)
    assert refused.returncode == 2 and said.endswith("small is in use by another process\n")


@pytest.mark.parametrize("arguments", [("large",), ("small", "--jobs", "0")])
def test_bad_arguments_are_refused(tmp_path, arguments, monkeypatch, capfd):
    monkeypatch.setattr(results, "STUDIES", {"small": Study({"CartPole-v1": 0.5}, {}, {}, (0,))})  # without runs
    monkeypatch.setattr(sys, "argv", ["results", "--folder", str(tmp_path), *arguments])
    with pytest.raises(SystemExit) as ended:
        results.main()
    assert ended.value.code == 2 and arguments[-1] in capfd.readouterr().err
