"""A resumed run equals, bit for bit, one that was never interrupted."""

import os
import re

import pytest

import hebbes
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.files.folder_lock import lock_folder
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.recording.metrics import read_metrics
from hebbes.training import assemble_run as assembling
from hebbes.training import lifecycle
from hebbes.training import prepare as preparation
from hebbes.training.advice import TrainingError
from hebbes.training.prepare import prepare
from tests.files.damage import flip_last_bit
from tests.training.scripted_runs import change, make_resumed_config, make_scripted_config, read_outcome, resume, train

IMPORT = ["--import", "tests.scripted"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The outcome of a run that was never interrupted."""
    return read_outcome(train(make_scripted_config(tmp_path_factory.mktemp("whole"))))


@pytest.mark.parametrize("stop", [4, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 8))])
def test_a_run_stopped_and_resumed_is_the_run_never_stopped(stop, whole, tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=stop))
    assert load_newest_checkpoint(folder / "checkpoint")[0].progress.units == stop
    assert read_outcome(resume(folder)) == whole


@pytest.mark.parametrize(
    "settings",
    [
        {"population_size": 6, "learning_rate": 0.1, "optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.01},
        pytest.param({"sampler": "low_rank"}, marks=pytest.mark.slow),
    ],
)
def test_other_strategy_settings_resume_too(settings, tmp_path):
    config = make_scripted_config(tmp_path, **settings, observation_normalization=True, episodes_per_member=2)
    uninterrupted = read_outcome(train(change(config, run_name="whole")))
    folder = train(change(config, generations=3))
    assert read_outcome(resume(folder)) == uninterrupted


def test_rows_behind_the_checkpoint_and_a_torn_one_are_written_again(whole, tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=4))
    metrics = folder / "metrics.csv"
    with metrics.open("a") as file:
        file.write(metrics.read_text().splitlines()[-1].replace("4,", "5,", 1) + "\n6,1")
    assert read_outcome(resume(folder)) == whole


def test_only_the_last_three_checkpoints_are_kept(tmp_path):
    folder = train(make_scripted_config(tmp_path, eval_every=100)) / "checkpoint"
    assert sorted(path.name for path in folder.iterdir()) == ["00000006.ckpt", "00000008.ckpt", "00000009.ckpt"]


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before_it(whole, tmp_path, capsys):
    folder = train(make_scripted_config(tmp_path, generations=7, eval_every=100))
    for name in ("00000007.ckpt", "00000006.ckpt"):
        flip_last_bit(folder / "checkpoint" / name)
    (run,) = prepare(make_resumed_config(folder))
    assert run.progress.units == 4
    os.close(run.lock)
    said = capsys.readouterr().err
    assert "00000007.ckpt: " in said and "00000006.ckpt: " in said
    assert said.count("the checksum does not match; an earlier checkpoint is used\n") == 2
    assert read_outcome(resume(folder))["strategy.mean"] == whole["strategy.mean"]


def test_without_a_whole_checkpoint_nothing_is_resumed(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=3))
    for path in (folder / "checkpoint").iterdir():
        flip_last_bit(path)
    with pytest.raises(
        ValueError, match=rf"^{folder}/checkpoint has no checkpoint that can be used: .*init_from .*00000003.ckpt: "
    ):
        resume(folder)


def test_leftovers_of_killed_writers_are_swept(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    left = [folder / ".best.dat.x.tmp", folder / "checkpoint" / ".00000004.ckpt.x.tmp"]
    for path in left:
        path.write_text("half")
    resume(folder)
    assert not any(path.exists() for path in left)


def test_folders_of_processes_killed_at_their_start_are_swept(tmp_path):
    left = tmp_path / "Scripted-v0" / ".run.abc.tmp" / "checkpoint"
    left.mkdir(parents=True)
    train(make_scripted_config(tmp_path, generations=1))
    assert [path.name for path in (tmp_path / "Scripted-v0").iterdir()] == ["run"]


def test_policy_files_are_made_again_from_the_checkpoint(whole, tmp_path):
    folder = train(make_scripted_config(tmp_path))
    (folder / "best.dat").unlink()
    (folder / "latest.dat").write_bytes(b"damaged")
    assert read_outcome(resume(folder)) == whole


def test_a_run_can_be_resumed_at_its_very_start(whole, tmp_path):
    (run,) = prepare(make_scripted_config(tmp_path))
    os.close(run.lock)
    assert read_outcome(resume(run.folder)) == whole


def test_another_machine_is_named_and_the_run_goes_on(tmp_path, monkeypatch, capsys):
    folder = train(make_scripted_config(tmp_path, generations=2))
    monkeypatch.setattr(preparation, "find_conditions", lambda: {"hebbes": "0", "cpu": "another", "numpy": "0.1"})
    resume(folder, generations=3, chunk_size=2)
    line = next(line for line in capsys.readouterr().err.splitlines() if str(folder) in line)
    assert "is another" in line and "is 0.1" in line and "chunk_size" not in line


def test_a_run_that_began_with_a_text_that_may_be_code_goes_on(tmp_path, monkeypatch):
    arguments = {"truncate_at": 4, "raise_in": "json:tool"}
    with monkeypatch.context() as earlier:
        earlier.setattr(assembling, "check_can_be_saved", lambda *_: None)
        folder = train(make_scripted_config(tmp_path, generations=2, env_kwargs=arguments))
    resume(folder, generations=3)
    assert load_newest_checkpoint(folder / "checkpoint")[0].progress.units == 3


def test_files_that_differ_from_the_commit_are_told_of(tmp_path, monkeypatch, capsys):
    folder = train(make_scripted_config(tmp_path, generations=2))
    monkeypatch.setattr(preparation, "find_conditions", lambda: {"hebbes": "1.0+abc+"})
    resume(folder, generations=3)
    assert "hebbes 1.0+abc+ has files that differ from the commit" in capsys.readouterr().err


def test_policies_come_from_where_they_were_trained_and_not_from_where_they_are_saved_again(tmp_path, monkeypatch):
    def list_origins():
        saved = [read_policy_file(folder / name, IMPORT).provenance for name in ("best.dat", "latest.dat")]
        return [each["cpu"] for each in (*saved, load_newest_checkpoint(folder / "checkpoint")[0].conditions)]

    folder = train(make_scripted_config(tmp_path, generations=2))
    here = list_origins()
    monkeypatch.setattr(lifecycle, "find_conditions", lambda: {"cpu": "another"})
    resume(folder, generations=2)
    assert list_origins() == here and len(set(here)) == 1
    resume(folder, generations=3)
    assert list_origins()[1:] == ["another"] * 2


def test_one_process_at_a_time(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    lock = lock_folder(folder)
    with pytest.raises(ValueError, match="in use by another process"):
        resume(folder)
    os.close(lock)
    resume(folder)


def test_the_options_come_from_the_run_and_only_some_may_change(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    flags = ["--resume", str(folder), *IMPORT]
    config = parse_config("static", [*flags, "--generations", "4", "--threads", "2"], "")
    expected = change(make_scripted_config(tmp_path), generations=4, threads=2).as_options()
    assert config.as_options() == expected
    config = parse_config("static", [*flags, "--popsize", "8"], "")  # as it was
    assert config.settings.population_size == 8
    config = parse_config("static", [*flags, "--environment", "tests.scripted:Scripted-v0"], "")  # means the same
    assert config.environment.id == "Scripted-v0"
    with pytest.raises(ValueError, match=r"sigma cannot change when a run is resumed: it is 0.1 in .*, got 0.2"):
        parse_config("static", [*flags, "--sigma", "0.2"], "")
    with pytest.raises(ValueError, match=r"num_interactions cannot change .*: it is none in .*, got 9$"):
        parse_config("static", [*flags, "--num_interactions", "9"], "")


def test_code_that_a_checkpoint_names_is_imported_only_where_the_user_says_so(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=1))
    with pytest.raises(
        ValueError, match=r"needs code from the module 'tests.scripted'; .* give --import tests.scripted "
    ):
        parse_config("static", ["--resume", str(folder)], "")


@pytest.mark.parametrize(("name", "reason"), [("nowhere", "is not there"), (".", "has no checkpoint")])
def test_a_folder_without_a_run_is_refused(name, reason, tmp_path):
    with pytest.raises(ValueError, match=f"resume must name the folder of a run, got .*, which {reason}"):
        parse_config("static", ["--resume", str(tmp_path / name)], "")


def test_a_file_of_a_run_and_the_folder_above_it_say_where_it_is(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=1))
    told = {
        folder / "best.dat": f"a file; give {folder}",
        folder / "checkpoint" / "00000001.ckpt": f"a file; give {folder}",
        folder / "checkpoint": f"which is inside one; give {folder}",
        folder.parent: "the runs in it are run",
    }
    for wrong, expected in told.items():
        with pytest.raises(ValueError, match=f"{re.escape(expected)}$"):
            parse_config("static", ["--resume", str(wrong)], "")


def test_the_clock_goes_on_too(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    resume(folder)
    seconds = read_metrics(folder / "metrics.csv")["seconds"]
    assert (seconds[1:] > seconds[:-1]).all()


def test_a_name_that_stands_for_another_environment_is_refused(tmp_path):
    folder = tmp_path / "LunarLander-v3" / "run"
    options = {"environment": "LunarLander-v3", "policy": "linear", "generations": 1, "population_size": 4}
    short = {"max_episode_steps": 5, "test_episodes": 0, "eval_episodes": 1, "threads": 1, "preset": "none"}
    hebbes.train({**options, **short, "folder": str(tmp_path), "run_name": "run"}, quiet=True)
    with pytest.raises(ValueError, match="environment cannot change when a run is resumed: it is 'LunarLander-v3' in"):
        parse_config("static", ["--resume", str(folder), "--environment", "LunarLanderContinuous-v3"], "")
    assert parse_config("static", ["--resume", str(folder), "--environment", "LunarLander"], "").environment.id


@pytest.mark.parametrize(
    ("text", "reason"), [("", "must hold a mapping of options"), ("seed: [", "is not valid YAML: .* at line 1, .*")]
)
def test_a_config_file_that_cannot_be_read_is_kept_and_refused(text, reason, tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    (folder / "config.yaml").write_text(text)
    with pytest.raises(ValueError, match=rf"config\.yaml {reason}; move it away$"):
        parse_config("static", ["--resume", str(folder), "--import", "tests.scripted"], "")
    assert (folder / "config.yaml").read_text() == text


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    (folder / "best.dat").unlink()
    (folder / "best.dat").mkdir()
    with pytest.raises(TrainingError, match=f"generation 4 could not be saved: Is a directory: {folder}/best.dat$"):
        resume(folder, generations=4)


def test_printing_the_options_of_a_run_does_not_run_it(tmp_path, capsys):
    folder = train(make_scripted_config(tmp_path, generations=2))
    with pytest.raises(SystemExit) as ended:
        parse_config("static", ["--resume", str(folder), *IMPORT, "--generations", "7", "--print_config"], "")
    assert ended.value.code == 0
    assert "generations: 7\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("population_size: 8", "popsize: 9", "population_size"),
        ("population_size: 8", "openai_es.population_size: 9", "population_size"),
        ("wrappers: []", "wrappers:", "wrappers"),
        ("wrappers: []", "wrappers: 5", "wrappers"),
        ("wrappers: []", "wrappers: [{early_stop: }]", "wrappers"),
        ("wrappers: []", "wrappers: [{early_stop: 5}]", "wrappers"),
        ("population_size: 8", "population-size: 9", "population_size"),
    ],
)
def test_an_edited_config_file_is_named_however_the_option_is_spelled(tmp_path, before, after, name):
    folder = train(make_scripted_config(tmp_path, generations=1, population_size=8))
    text = (folder / "config.yaml").read_text()
    assert f"\n{before}\n" in text
    (folder / "config.yaml").write_text(text.replace(f"\n{before}\n", f"\n{after}\n"))
    with pytest.raises(ValueError, match=f"^resume {folder}: {name} is .* in the newest checkpoint and .* in config"):
        resume(folder, generations=2)
