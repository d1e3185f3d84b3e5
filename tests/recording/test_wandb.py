"""Weights & Biases, offline: the files that real runs leave are read back."""

import os
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest

import hebbes
from hebbes.environments.part_spec import PartSpec
from hebbes.recording.loggers import check_logger
from hebbes.recording.metrics import read_metrics
from hebbes.recording.wandb import ID_FILE, WandB
from tests.python_process import ROOT, run_python
from tests.recording.wandb_files import list_runs, list_steps, read_records

OPTIONS = {"environment": "CartPole-v1", "generations": 2, "threads": 1, "test_episodes": 0, "wandb": True}


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")


@pytest.mark.slow
@pytest.mark.usefixtures("drawn_curves")
def test_a_run_leaves_its_options_its_rows_and_its_learning_curve(tmp_path):
    exit_before = sys.exit, sys.excepthook
    run = hebbes.train({**OPTIONS, "wandb_project": "ants", "folder": tmp_path, "sigma": 0.125}, quiet=True)
    assert (sys.exit, sys.excepthook) == exit_before
    records = read_records(run.folder)
    ((run_id, project, name, options),) = list_runs(records)
    assert (project, name) == ("ants", "/".join(run.folder.parts[-2:]))
    assert run_id == (run.folder / ID_FILE).read_text().strip()
    assert (options["environment"], options["sigma"], options["strategy"]) == ("CartPole-v1", 0.125, "openai_es")
    steps = list_steps(records)
    image = [steps[-1].pop(name) for name in list(steps[-1]) if name.startswith("learning_curve.")]
    assert "image-file" in image
    columns = read_metrics(run.folder / "metrics.csv")
    for number, step in enumerate(steps):
        expected = {each: values[number] for each, values in columns.items() if values[number] == values[number]}
        assert step == pytest.approx(expected)
    assert len(steps) == 2
    (uploaded,) = run.folder.glob("wandb/offline-run-*/files/media/images/learning_curve*.png")
    assert uploaded.read_bytes() == (run.folder / "learning_curve.png").read_bytes()


@pytest.mark.slow
def test_videos_in_the_folder_are_uploaded_at_the_end(tmp_path):
    (tmp_path / "config.yaml").write_text("environment: CartPole-v1\n")
    logger = WandB(tmp_path, 0)
    (tmp_path / "film.mp4").write_bytes(b"frames")
    logger.close()
    (uploaded,) = tmp_path.glob("wandb/offline-run-*/files/media/videos/film*.mp4")
    assert uploaded.read_bytes() == b"frames"
    (step,) = list_steps(read_records(tmp_path))
    assert step["film._type"] == "video-file"


@pytest.mark.slow
def test_a_run_that_ctrl_c_stops_is_resumed_under_the_same_id(tmp_path):
    command = [sys.executable, "train_static.py", "--environment", "CartPole-v1", "--generations", "100000", "--wandb"]
    command += ["--threads", "1", "--test_episodes", "0", "--folder", str(tmp_path), "--run_name", "run"]
    folder = tmp_path / "CartPole-v1" / "run"
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (folder / "metrics.csv").exists() or (folder / "metrics.csv").stat().st_size < 2000:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: wandb's own process gets it too
        assert process.wait(300) == 128 + signal.SIGINT
    first = list_steps(read_records(folder))
    generations = len(read_metrics(folder / "metrics.csv")["generation"])
    assert [step["generation"] for step in first if "generation" in step] == [*range(1, generations + 1)]
    run_python("train_static.py", "--resume", folder, "--generations", generations + 2)
    records = read_records(folder)
    assert len({run_id for run_id, *_ in list_runs(records)}) == 1
    assert len(list_runs(records)) == 2
    counted = [step["generation"] for step in list_steps(records) if "generation" in step]
    assert counted == [*range(1, generations + 3)]


def refuse_online(folder, **environment):
    """The only line of a program that logs online without an account, or with a wrong one."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    environment |= {"HOME": str(folder), "NETRC": str(folder / "none"), "WANDB_MODE": "online"}
    command = ["train_static.py", "--environment", "CartPole-v1", "--wandb", "--folder", folder]
    ended = run_python(*command, env=inherited | environment, status=2)
    assert not (folder / "CartPole-v1").exists()
    return ended.stderr.splitlines()[-1]


@pytest.mark.slow
def test_online_without_an_account_is_refused_before_anything_is_made(tmp_path):
    line = refuse_online(tmp_path)
    assert "wandb has no account here; run `wandb login`, or set WANDB_MODE=offline" in line


@pytest.mark.slow
def test_a_key_that_cannot_be_one_is_refused_too(tmp_path):
    line = refuse_online(tmp_path, WANDB_API_KEY="abc")
    assert line.startswith("train_static.py: error: ") and "API key" in line


def test_a_row_is_lost_for_good_if_its_process_has_gone(tmp_path):
    """So it is no OSError, after which the row would be written later."""
    (tmp_path / "config.yaml").write_text("environment: CartPole-v1\n")
    logger, gone = WandB(tmp_path, 0), BrokenPipeError(32, "Broken pipe")
    run, logger._run = logger._run, Mock(log=Mock(side_effect=gone))
    with pytest.raises(RuntimeError, match=r"its process does not answer: .*Broken pipe"):
        logger.write({"generation": 1})
    run.finish()


def test_without_the_package_a_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("hebbes.recording.wandb.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"wandb needs the package wandb; pip install 'wandb~=0\.31\.0'"):
        check_logger(PartSpec("wandb"))


def test_a_folder_of_its_name_is_not_the_package(monkeypatch, tmp_path):
    (tmp_path / "wandb").mkdir()
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ValueError, match=r"wandb needs the package wandb"):
        check_logger(PartSpec("wandb"))
