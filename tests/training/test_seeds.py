"""Runs of several seeds under one name are started, stopped and resumed one after the other."""

import gc
import os
import shutil
import weakref
from importlib import import_module

import pytest

from hebbes.files import checkpoint
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.files.folder_lock import lock_folder
from hebbes.files.policy_file import read_policy_file
from hebbes.programs.train import prepare_runs
from hebbes.recording.console import Console
from hebbes.strategies.openai_es import OpenAIES
from hebbes.training.advice import TrainingError
from hebbes.training.prepare import prepare
from hebbes.training.run import execute, execute_all
from tests.training.scripted_runs import change, make_scripted_config, read_outcome, train

IMPORT = ["--import", "tests.scripted"]


class OutOfLuck(OpenAIES):
    """A strategy that fails with one of the seeds."""

    def __init__(self, settings, initial, seed):
        super().__init__(settings, initial, seed)
        self._is_lucky = seed != 1

    def ask(self, generation, members=None):
        if generation and not self._is_lucky:
            raise FloatingPointError("out of luck")
        return super().ask(generation, members)


def find_top(tmp_path):
    return tmp_path / "Scripted-v0" / "run"


def prepare_resume(top, *flags):
    """The runs of a folder, to be resumed."""
    return prepare_runs("static", ["--resume", str(top), *IMPORT, *flags], "", Console())


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The outcome of each of three seeds when it runs alone."""
    folder = tmp_path_factory.mktemp("alone")
    configs = [make_scripted_config(folder, seed=seed, generations=3, run_name=f"{seed}") for seed in (9, 10, 11)]
    return [read_outcome(train(config)) for config in configs]


@pytest.mark.slow
def test_each_begins_in_its_turn_and_is_what_it_would_be_alone(alone, tmp_path):
    runs = prepare(make_scripted_config(tmp_path, seed=9, seeds=3, generations=3))
    top = find_top(tmp_path)
    assert list_names(top) == ["config.yaml", "seed9"]
    found = []
    for number, run in enumerate(runs):
        assert set(list_names(top)) == {"config.yaml", *("seed9", "seed10", "seed11")[: number + 1]}
        execute(run)
        found.append(read_outcome(run.folder))
    assert found == alone


def test_the_turn_of_each_is_announced_and_those_that_ended_are_compared(tmp_path, capsys):
    execute_all(prepare(make_scripted_config(tmp_path, seed=9, seeds=2, generations=1, test_episodes=2)))
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("seed ")] == [
        f"seed 1 of 2     9, in {find_top(tmp_path) / 'seed9'}",
        f"seed 2 of 2     10, in {find_top(tmp_path) / 'seed10'}",
    ]
    assert any(line.startswith("2 runs ") for line in said)


def test_those_that_are_finished_are_compared_without_being_played_again(tmp_path, capsys):
    def read_table():
        said = capsys.readouterr().out
        return said[said.index("1  seed0") :]

    execute_all(prepare(make_scripted_config(tmp_path, seeds=2, generations=1, test_episodes=2)))
    expected = read_table()
    played = [find_top(tmp_path) / name / "test.json" for name in ("seed0", "seed1")]
    before = [path.stat().st_ino for path in played]
    execute_all(prepare_resume(find_top(tmp_path)))
    assert read_table() == expected
    assert [path.stat().st_ino for path in played] == before


@pytest.mark.slow
def test_no_run_is_kept_after_its_turn(tmp_path):
    import_module("envpool")  # its first import keeps the frames under which it happens
    runs = prepare(make_scripted_config(tmp_path, seeds=3, generations=1))
    references = []
    for seed in runs.seeds:
        run = runs.prepare(seed)
        references.append(weakref.ref(run.trainer))
        execute(run)
        del run
        gc.collect()
        assert [reference() for reference in references] == [None] * len(references)


def test_as_many_seeds_as_there_may_be_cost_nothing_before_their_turn(tmp_path):
    runs = prepare(make_scripted_config(tmp_path, seeds=10_000, generations=1))
    assert len(runs.seeds) == 10_000
    execute(runs.prepare(0))
    runs.close()
    assert len(prepare_resume(find_top(tmp_path)).seeds) == 10_000


@pytest.mark.slow
def test_all_of_them_go_on_where_one_is_finished_one_interrupted_and_one_never_began(alone, tmp_path):
    runs = prepare(make_scripted_config(tmp_path, seed=9, seeds=3, generations=3))
    execute(runs.prepare(9))
    runs.close()
    top = find_top(tmp_path)
    runs = prepare_resume(top, "--generations", "1")
    for seed in (9, 10):
        execute(runs.prepare(seed))
    runs.close()
    assert load_newest_checkpoint(top / "seed10" / "checkpoint")[0].progress.units == 1
    assert list_names(top) == ["config.yaml", "seed10", "seed9"]
    execute_all(prepare_resume(top, "--generations", "3"))
    assert [read_outcome(top / f"seed{seed}") for seed in (9, 10, 11)] == alone


def test_a_prolonged_series_prolongs_those_that_never_began(tmp_path):
    runs = prepare(make_scripted_config(tmp_path, seeds=2, generations=2))
    execute(runs.prepare(0))
    runs.close()
    execute_all(prepare_resume(find_top(tmp_path), "--generations", "3"))
    folders = [find_top(tmp_path) / f"seed{seed}" for seed in (0, 1)]
    assert [load_newest_checkpoint(folder / "checkpoint")[0].progress.units for folder in folders] == [3, 3]


def test_one_process_at_a_time(tmp_path, capsys):
    runs = prepare(make_scripted_config(tmp_path, seeds=2, generations=1))
    top = find_top(tmp_path)
    with pytest.raises(ValueError, match=r"folder .*run is in use by another process"):
        prepare_resume(top)
    execute(runs.prepare(0))
    with pytest.raises(ValueError, match=r"folder .*run is in use by another process"):
        prepare_resume(top)
    execute(runs.prepare(1))
    runs.close()
    held = lock_folder(top / "seed1")
    with pytest.raises(TrainingError, match=r"1 of 2 seeds; .* in use by another process"):
        execute_all(prepare_resume(top))
    os.close(held)
    assert f"stopped         {top / 'seed1'}: folder" in capsys.readouterr().out
    assert execute_all(prepare_resume(top))


@pytest.mark.parametrize("reason", ["not a hebbes file", "in use by another process", "Permission denied"])
def test_a_first_seed_that_cannot_go_on_does_not_stop_the_others(tmp_path, capsys, monkeypatch, reason):
    execute_all(prepare(make_scripted_config(tmp_path, seeds=3, generations=1)))
    top, held = find_top(tmp_path), None

    def list_paths(folder, list_others=checkpoint._list_paths):
        if folder.parent.name == "seed0":
            raise PermissionError(13, reason)  # tests may run as root, who is denied nothing
        return list_others(folder)

    if reason == "not a hebbes file":
        for path in (top / "seed0" / "checkpoint").glob("*.ckpt"):
            path.write_bytes(b"damaged")
    elif reason == "Permission denied":
        monkeypatch.setattr(checkpoint, "_list_paths", list_paths)
    else:
        held = lock_folder(top / "seed0")
    with pytest.raises(TrainingError, match=r"1 of 3 seeds; the last error: "):
        execute_all(prepare_resume(top, "--generations", "2"))
    if held is not None:
        os.close(held)
    assert reason in next(line for line in capsys.readouterr().out.splitlines() if line.startswith("stopped"))
    done = [load_newest_checkpoint(top / f"seed{seed}" / "checkpoint")[0].progress.units for seed in (1, 2)]
    assert done == [2, 2]
    with pytest.raises(ValueError, match="sigma cannot change when a run is resumed"):
        prepare_resume(top, "--sigma", "3")


def test_they_are_refused_together_or_not_at_all(tmp_path):
    train(make_scripted_config(tmp_path, generations=1))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="exists already"):
        prepare(make_scripted_config(tmp_path, seeds=3))
    with pytest.raises(ValueError, match=r"seeds must be in \[1, 10000\], got 0"):
        make_scripted_config(tmp_path, seeds=0)
    with pytest.raises(ValueError, match="hidden_sizes must be >= 1"):
        prepare(make_scripted_config(tmp_path, seeds=3, run_name="other", policy="mlp", hidden_sizes=(0,)))
    assert sorted(tmp_path.rglob("*")) == before


def test_each_resumes_with_its_own_options(tmp_path):
    execute_all(prepare(make_scripted_config(tmp_path, seeds=2, generations=2)))
    top = find_top(tmp_path)
    execute_all(prepare_resume(top / "seed1", "--chunk_size", "3"))
    found = []
    for run in prepare_resume(top, "--generations", "3", "--seed", "0", "--seeds", "2"):  # both as they were
        found.append((run.config.run.seed, run.config.engine.chunk_size, run.config.trainer_options.generations))
        os.close(run.lock)
    assert found == [(0, None, 3), (1, 3, 3)]
    with pytest.raises(ValueError, match=r"seeds cannot change when a run is resumed: it is 2 in .*, got 3"):
        prepare_resume(top, "--seeds", "3")


@pytest.mark.slow
def test_a_missing_run_begins_anew_and_a_damaged_one_is_named(alone, tmp_path):
    execute_all(prepare(make_scripted_config(tmp_path, seed=9, seeds=3, generations=3)))
    top = find_top(tmp_path)
    shutil.copytree(top / "seed9", top / "seed7")  # not one of those asked for
    shutil.rmtree(top / "seed9")
    execute_all(prepare_resume(top))
    assert [read_outcome(top / f"seed{seed}") for seed in (9, 10, 11)] == alone
    shutil.rmtree(top / "seed10" / "checkpoint")
    with pytest.raises(ValueError, match="seed10 has no checkpoint; move it away to begin it anew"):
        prepare_resume(top)


def test_they_start_from_a_copy_of_one_file(tmp_path):
    start = train(make_scripted_config(tmp_path, generations=2, run_name="start")) / "latest.dat"
    config = make_scripted_config(tmp_path, seed=4, generations=2, init_from=str(start))
    expected = read_outcome(train(change(config, seed=5, run_name="alone")))
    runs = prepare(change(config, seeds=2))
    start.unlink()
    execute_all(runs)
    found = find_top(tmp_path) / "seed5"
    assert read_outcome(found) == expected
    assert load_newest_checkpoint(found / "checkpoint")[0].config["init_from"] == str(start)


def test_one_that_fails_does_not_keep_the_others_from_their_turn(tmp_path, capsys):
    config = make_scripted_config(tmp_path, seeds=3, generations=2, test_episodes=1, strategy=f"{__name__}:OutOfLuck")
    top = find_top(tmp_path)
    with pytest.raises(TrainingError, match="1 of 3 seeds; the last error: generation 2: out of luck"):
        execute_all(prepare(config))
    said = capsys.readouterr().out.splitlines()
    assert f"stopped         {top / 'seed1'}: generation 2: out of luck" in said
    assert any(line.startswith("2 runs ") for line in said)
    assert said[-1].startswith("what helps      a new run with other step sizes (--learning_rate, --sigma)")
    done = [load_newest_checkpoint(top / f"seed{seed}" / "checkpoint")[0].progress.units for seed in range(3)]
    assert done == [2, 1, 2]
    assert read_policy_file(top / "seed2" / "best.dat", ["tests.scripted"]).provenance["seed"] == 2


@pytest.mark.parametrize("flags", [["--run.resume", "TOP"], ["--resume", "TOP", "--run.seed", "0"]])
def test_options_may_have_their_owners_names_when_they_are_resumed(flags, tmp_path):
    runs = prepare(make_scripted_config(tmp_path, seeds=2, generations=1))
    execute(runs.prepare(0))
    runs.close()
    words = [str(find_top(tmp_path)) if word == "TOP" else word for word in flags]
    resumed = prepare_runs("static", [*words, *IMPORT, "--generations", "2"], "", Console())
    for seed in (0, 1):
        execute(resumed.prepare(seed))
        assert load_newest_checkpoint(resumed.find_folder(seed) / "checkpoint")[0].progress.units == 2
    resumed.close()
