"""The runs that a folder holds, their policy files, and what their checkpoints say."""

import filecmp
import os
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from hebbes.environments.environment_spec import describe_environment
from hebbes.files.checkpoint import FOLDER, load_newest_checkpoint, save_checkpoint
from hebbes.files.policy_file import read_policy_file
from hebbes.recording.metrics import MetricsWriter
from hebbes.training import run_folder
from hebbes.training.advice import TrainingError
from hebbes.training.background_films import VIDEOS
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.training.run_folder import RunFiles
from hebbes.training.run_options import RESERVED_NAMES
from hebbes.training.run_status import read_status
from hebbes.training.saved_runs import (
    KEPT,
    SWEEPS,
    find_run_folders,
    list_kept_files,
    list_policy_files,
    read_saved_run,
)
from tests.training.scripted_runs import make_scripted_config, resume, train


def make_run(folder, *files):
    (folder / "checkpoint").mkdir(parents=True)
    for name in files:
        (folder / name).touch()
    return folder


def test_runs_are_found_in_any_depth_in_the_order_of_their_seeds(tmp_path):
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "config.yaml").touch()
    seeds = [make_run(tmp_path / "top" / f"seed{seed}", "config.yaml") for seed in (2, 10)]
    alone = make_run(tmp_path / "alone" / "deep")
    damaged = tmp_path / "without checkpoints"
    damaged.mkdir()
    (damaged / "config.yaml").touch()
    make_run(tmp_path / ".run.123.tmp")
    assert find_run_folders(tmp_path) == [alone, *seeds, damaged]
    assert find_run_folders(seeds[0]) == [seeds[0]]


def test_what_holds_no_run_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name, why in {
        "empty": "holds no run",
        "file": "is a file, not the folder of a run",
        "c": "is not there",
    }.items():
        with pytest.raises(ValueError, match=f"^{tmp_path / name} {why}$"):
            find_run_folders(tmp_path / name)


def test_no_run_has_the_name_of_a_folder_in_a_run():
    assert RESERVED_NAMES == (FOLDER, KEPT, VIDEOS, SWEEPS)


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch, capsys):
    for name in ("a", "b"):
        make_run(tmp_path / name, "best.dat")
    scan, exists = os.scandir, Path.exists

    def refuse(path):
        if Path(path).is_relative_to(tmp_path / "b"):
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", lambda path: refuse(path) or scan(path))
    monkeypatch.setattr(Path, "exists", lambda path: refuse(path) or exists(path))
    assert find_run_folders(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert list_policy_files([str(tmp_path)]) == [str(tmp_path / "a" / "best.dat")]
    assert capsys.readouterr().err == f"left out  {tmp_path}/b: Permission denied\n"


def test_a_folder_stands_for_the_best_policy_of_each_run(tmp_path, capsys):
    make_run(tmp_path / "a" / "seed0", "best.dat")
    make_run(tmp_path / "a" / "seed1", "best.dat")
    paths = ["x.dat", str(tmp_path / "a")]
    assert list_policy_files(paths) == ["x.dat", *(str(tmp_path / "a" / f"seed{seed}" / "best.dat") for seed in (0, 1))]
    make_run(tmp_path / "a" / "seed2")
    assert len(list_policy_files(paths)) == 3
    assert capsys.readouterr().err == f"left out  {tmp_path}/a/seed2: it has no best.dat yet\n"
    make_run(tmp_path / "b")
    with pytest.raises(ValueError, match=r"b has no best\.dat: the run was not evaluated yet, or"):
        list_policy_files([str(tmp_path / "b")])


def test_sweeps_are_left_out_of_a_folder_with_other_runs(tmp_path, capsys):
    for name in ("a", "sweeps/cem/trial0", "sweeps/cem/trial1"):
        make_run(tmp_path / name, "best.dat")
    trials = [str(tmp_path / "sweeps" / "cem" / name / "best.dat") for name in ("trial0", "trial1")]
    assert list_policy_files([str(tmp_path)]) == [str(tmp_path / "a" / "best.dat")]
    assert capsys.readouterr().err == f"left out  2 runs of sweeps in {tmp_path}: name their folders too\n"
    assert list_policy_files([str(tmp_path / "sweeps")]) == trials
    shutil.rmtree(tmp_path / "a")
    assert list_policy_files([str(tmp_path)]) == trials
    assert capsys.readouterr().err == ""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(make_scripted_config(tmp_path_factory.mktemp("weights"), seed=3, generations=1))


def test_a_saved_run_is_read_without_its_weights(trained):
    run, checkpoint = read_saved_run(trained), load_newest_checkpoint(trained / "checkpoint")[0]
    assert (run.environment, run.seed, run.options["sigma"]) == ("Scripted-v0", 3, checkpoint.config["sigma"])
    found = run.header.units, run.header.env_steps, run.header.seconds, run.header.best_score
    progress = checkpoint.progress
    assert found == (progress.units, progress.env_steps, progress.seconds, progress.best.score)


def test_env_steps_at_the_start_of_episodes_belong_to_the_environment(trained, tmp_path):
    checkpoint, _ = load_newest_checkpoint(trained / "checkpoint")
    (tmp_path / "checkpoint").mkdir()
    options = {**checkpoint.config, "settle_steps": 3, "fire_reset": True}
    save_checkpoint(tmp_path / "checkpoint", replace(checkpoint, config=options))
    found = describe_environment(read_saved_run(tmp_path).spec)
    assert found == describe_environment(read_saved_run(trained).spec) + " settle{'num_steps': 3} fire_reset"


def test_an_older_checkpoint_takes_the_place_of_a_damaged_one(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    newest, *_ = sorted((tmp_path / "run" / "checkpoint").glob("*.ckpt"), reverse=True)
    newest.write_bytes(newest.read_bytes()[:-1])
    assert read_saved_run(tmp_path / "run").header.units == 0


@pytest.mark.parametrize(
    ("option", "value"), [("seed", "x"), ("environment", 3), ("max_env_steps", [1]), ("wrappers", 5), ("env_kwargs", 1)]
)
def test_options_that_make_no_sense_are_damage(trained, tmp_path, option, value):
    checkpoint, _ = load_newest_checkpoint(trained / "checkpoint")
    (tmp_path / "checkpoint").mkdir()
    save_checkpoint(tmp_path / "checkpoint", replace(checkpoint, config={**checkpoint.config, option: value}))
    with pytest.raises(ValueError, match=f"^{tmp_path}: "):
        read_saved_run(tmp_path)
    assert read_status(tmp_path).state == "damaged"


def test_a_time_that_no_float_holds_is_damage(trained, tmp_path):
    checkpoint, _ = load_newest_checkpoint(trained / "checkpoint")
    (tmp_path / "checkpoint").mkdir()
    progress = replace(checkpoint.progress, seconds=10**400)
    save_checkpoint(tmp_path / "checkpoint", replace(checkpoint, progress=progress))
    assert read_status(tmp_path).state == "damaged"


def test_names_that_are_not_utf_8_are_as_good_as_others(tmp_path):
    folder = train(make_scripted_config(tmp_path / "a\udcff", run_name="b\udcff", generations=1))
    assert folder == tmp_path / "a\udcff" / "Scripted-v0" / "b\udcff"
    assert list_policy_files([str(tmp_path)]) == [str(folder / "best.dat")]
    assert resume(folder, generations=2) == folder and read_saved_run(folder).header.units == 2


def test_a_policy_to_keep_is_written_later_if_something_is_in_its_place(tmp_path, monkeypatch):
    save = RunFiles.save
    (run,) = prepare(make_scripted_config(tmp_path, generations=4, keep_every=1))
    obstacle = run.folder / KEPT / "00000002.dat"

    def obstruct(row):
        if row["generation"] == 1:
            (obstacle / "in the way").mkdir(parents=True)
        if row["generation"] == 3:
            shutil.rmtree(obstacle)

    weights = []

    def note_and_save(self, checkpoint, metrics):
        weights.append(checkpoint.latest.weights)
        save(self, checkpoint, metrics)

    monkeypatch.setattr(RunFiles, "save", note_and_save)
    assert execute(run, obstruct).is_complete
    assert [path.name for path in list_kept_files(run.folder)] == [f"{number:08}.dat" for number in range(5)]
    kept = read_policy_file(obstacle, ["tests.scripted"])
    assert kept.provenance["generation"] == 2 and (kept.weights == weights[2]).all()


def test_one_that_can_never_be_written_prevents_no_other(tmp_path):
    (run,) = prepare(make_scripted_config(tmp_path, generations=4, keep_every=1))
    (run.folder / KEPT / "00000002.dat" / "in the way").mkdir(parents=True)
    with pytest.raises(TrainingError, match=f"could not be saved: .*: {run.folder}/kept/00000002.dat$"):
        execute(run)
    kept = sorted(path.name for path in (run.folder / KEPT).iterdir() if path.is_file())
    assert kept == [f"{number:08}.dat" for number in (0, 1, 3, 4)]


def test_none_is_lost_while_metrics_cannot_be_written(tmp_path, monkeypatch):
    (run,) = prepare(make_scripted_config(tmp_path, generations=5, keep_every=1))
    sync = MetricsWriter.sync

    def refuse_at_first(self):
        if read_saved_run(run.folder).header.units < 1 and next(tries) < 3:
            raise OSError(28, "No space left on device")
        sync(self)

    tries = count()
    monkeypatch.setattr(MetricsWriter, "sync", refuse_at_first)
    assert execute(run).is_complete
    assert [path.name for path in list_kept_files(run.folder)] == [f"{number:08}.dat" for number in range(6)]


def test_a_run_writes_nothing_into_another_folder_that_has_taken_its_name(tmp_path):
    other = train(make_scripted_config(tmp_path / "other", generations=2))
    (other / "learning_curve.png").unlink()
    (run,) = prepare(make_scripted_config(tmp_path, generations=4))

    def replace_folder(row):
        if row["generation"] == 2:
            run.folder.rename(tmp_path / "moved")
            shutil.copytree(other, run.folder)

    with pytest.raises(TrainingError, match=f"could not be saved: Another folder has taken this name: {run.folder}$"):
        execute(run, replace_folder)
    assert not filecmp.dircmp(other, run.folder).right_only and not (run.folder / "learning_curve.png").exists()
    assert filecmp.cmpfiles(other, run.folder, [path.name for path in other.glob("*.*")], shallow=False)[1:] == ([], [])
    assert load_newest_checkpoint(tmp_path / "moved" / "checkpoint")[0].progress.units == 1


def test_only_the_latest_that_could_not_be_written_are_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "MOST_DUE", 2)
    (run,) = prepare(make_scripted_config(tmp_path, generations=6, keep_every=1))
    (run.folder / KEPT).touch()  # where the folder should be

    def clear(row):
        if row["generation"] == 4:
            (run.folder / KEPT).unlink()

    execute(run, clear)
    assert [path.name for path in list_kept_files(run.folder)] == [f"{number:08}.dat" for number in (3, 4, 5, 6)]
