"""Runs of several seeds under one name: begun, stopped and gone on with one after the other."""

import gc
import os
import shutil
import weakref
from dataclasses import replace

import pytest

from hebbes.files.checkpoint import newest_checkpoint
from hebbes.files.policy_file import load_policy
from hebbes.programs.train import runs_asked_for
from hebbes.strategies.openai_es import OpenAIES
from hebbes.training.generation_loop import TrainingError
from hebbes.training.prepare import prepare
from hebbes.training.run import execute, execute_all
from hebbes.training.run_folder import hold
from tests.training.scripted_runs import outcome, scripted_config, train

IMPORT = ["--import", "tests.scripted"]


class OutOfLuck(OpenAIES):
    """A strategy that cannot go on with one of the seeds."""

    def __init__(self, settings, initial, seed):
        super().__init__(settings, initial, seed)
        self._is_lucky = seed != 1

    def ask(self, generation, members=None):
        if generation and not self._is_lucky:
            raise FloatingPointError("out of luck")
        return super().ask(generation, members)


def top_of(tmp_path):
    return tmp_path / "Scripted-v0" / "run"


def resumed(top, *flags):
    """The runs that go on in a folder."""
    return runs_asked_for("static", ["--resume", str(top), *IMPORT, *flags], "")


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What each of three seeds leaves when it runs by itself."""
    folder = tmp_path_factory.mktemp("alone")
    configs = [scripted_config(folder, seed=seed, generations=3, run_name=f"{seed}") for seed in (9, 10, 11)]
    return [outcome(train(config)) for config in configs]


def test_each_begins_in_its_turn_and_is_what_it_would_be_alone(alone, tmp_path):
    runs = prepare(scripted_config(tmp_path, seed=9, seeds=3, generations=3))
    top = top_of(tmp_path)
    assert names_in(top) == ["config.yaml", "seed9"]
    found = []
    for number, run in enumerate(runs):
        assert set(names_in(top)) == {"config.yaml", *("seed9", "seed10", "seed11")[: number + 1]}
        execute(run)
        found.append(outcome(run.folder))
    assert found == alone


def test_the_turn_of_each_is_announced_and_those_that_ended_are_compared(tmp_path, capsys):
    execute_all(prepare(scripted_config(tmp_path, seed=9, seeds=2, generations=1, test_episodes=2)))
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("seed ")] == [
        f"seed 1 of 2     9, in {top_of(tmp_path) / 'seed9'}",
        f"seed 2 of 2     10, in {top_of(tmp_path) / 'seed10'}",
    ]
    assert any(line.startswith("2 runs ") for line in said)


def test_those_that_are_finished_are_compared_without_being_played_again(tmp_path, capsys):
    def table():
        said = capsys.readouterr().out
        return said[said.index("1  seed0") :]

    execute_all(prepare(scripted_config(tmp_path, seeds=2, generations=1, test_episodes=2)))
    expected = table()
    played = [top_of(tmp_path) / name / "test.json" for name in ("seed0", "seed1")]
    before = [path.stat().st_ino for path in played]
    execute_all(resumed(top_of(tmp_path)))
    assert table() == expected
    assert [path.stat().st_ino for path in played] == before


def test_no_run_is_kept_after_its_turn(tmp_path):
    runs = prepare(scripted_config(tmp_path, seeds=3, generations=1))
    references = []
    for seed in runs.seeds:
        run = runs.prepare(seed)
        references.append(weakref.ref(run.strategy))
        execute(run)
        del run
        gc.collect()
        assert [reference() for reference in references] == [None] * len(references)


def test_as_many_seeds_as_there_may_be_cost_nothing_before_their_turn(tmp_path):
    runs = prepare(scripted_config(tmp_path, seeds=10_000, generations=1))
    assert runs.total == 10_000
    execute(runs.prepare(0))
    runs.close()
    assert len(resumed(top_of(tmp_path)).seeds) == 10_000


def test_all_of_them_go_on_where_one_is_finished_one_interrupted_and_one_never_began(alone, tmp_path):
    runs = prepare(scripted_config(tmp_path, seed=9, seeds=3, generations=3))
    execute(runs.prepare(9))
    runs.close()
    top = top_of(tmp_path)
    runs = resumed(top, "--generations", "1")
    for seed in (9, 10):
        execute(runs.prepare(seed))
    runs.close()
    assert newest_checkpoint(top / "seed10" / "checkpoint")[0].progress.generation == 1
    assert names_in(top) == ["config.yaml", "seed10", "seed9"]
    execute_all(resumed(top, "--generations", "3"))
    assert [outcome(top / f"seed{seed}") for seed in (9, 10, 11)] == alone


def test_a_prolonged_series_prolongs_those_that_never_began(tmp_path):
    runs = prepare(scripted_config(tmp_path, seeds=2, generations=2))
    execute(runs.prepare(0))
    runs.close()
    execute_all(resumed(top_of(tmp_path), "--generations", "3"))
    folders = [top_of(tmp_path) / f"seed{seed}" for seed in (0, 1)]
    assert [newest_checkpoint(folder / "checkpoint")[0].progress.generation for folder in folders] == [3, 3]


def test_one_process_at_a_time(tmp_path, capsys):
    runs = prepare(scripted_config(tmp_path, seeds=2, generations=1))
    top = top_of(tmp_path)
    with pytest.raises(ValueError, match=r"run folder .*run is in use by another process"):
        resumed(top)
    execute(runs.prepare(0))
    with pytest.raises(ValueError, match=r"run folder .*run is in use by another process"):
        resumed(top)
    execute(runs.prepare(1))
    runs.close()
    held = hold(top / "seed1")
    with pytest.raises(TrainingError, match=r"1 of 2 seeds, .* in use by another process"):
        execute_all(resumed(top))
    os.close(held)
    assert f"stopped         {top / 'seed1'}: run folder" in capsys.readouterr().out
    assert execute_all(resumed(top))


def test_they_are_refused_together_or_not_at_all(tmp_path):
    train(scripted_config(tmp_path, generations=1))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="exists already"):
        prepare(scripted_config(tmp_path, seeds=3))
    with pytest.raises(ValueError, match="seeds must be >= 1, got 0"):
        scripted_config(tmp_path, seeds=0)
    with pytest.raises(ValueError, match="hidden_sizes must be >= 1"):
        prepare(scripted_config(tmp_path, seeds=3, run_name="other", policy="mlp", hidden_sizes=(0,)))
    assert sorted(tmp_path.rglob("*")) == before


def test_each_goes_on_with_its_own_options(tmp_path):
    execute_all(prepare(scripted_config(tmp_path, seeds=2, generations=2)))
    top = top_of(tmp_path)
    execute_all(resumed(top / "seed1", "--chunk_size", "3"))
    found = []
    for run in resumed(top, "--generations", "3"):
        found.append((run.config.seed, run.config.chunk_size, run.config.generations))
        os.close(run.lock)
    assert found == [(0, 4, 3), (1, 3, 3)]
    with pytest.raises(ValueError, match=r"seeds cannot change when a run goes on: it is 2 in .*, got 3"):
        resumed(top, "--seeds", "3")


def test_one_that_is_gone_begins_anew_and_one_that_is_damaged_is_named(alone, tmp_path):
    execute_all(prepare(scripted_config(tmp_path, seed=9, seeds=3, generations=3)))
    top = top_of(tmp_path)
    shutil.copytree(top / "seed9", top / "seed7")  # not one of those asked for
    shutil.rmtree(top / "seed9")
    execute_all(resumed(top))
    assert [outcome(top / f"seed{seed}") for seed in (9, 10, 11)] == alone
    shutil.rmtree(top / "seed10" / "checkpoint")
    with pytest.raises(ValueError, match="seed10 has no checkpoint; move it away to begin it anew"):
        resumed(top)


def test_they_start_from_one_file_whatever_becomes_of_it(tmp_path):
    start = train(scripted_config(tmp_path, generations=2, run_name="start")) / "latest.dat"
    config = scripted_config(tmp_path, seed=4, generations=2, init_from=str(start))
    expected = outcome(train(replace(config, seed=5, run_name="alone")))
    runs = prepare(replace(config, seeds=2))
    start.unlink()
    execute_all(runs)
    found = top_of(tmp_path) / "seed5"
    assert outcome(found) == expected
    assert newest_checkpoint(found / "checkpoint")[0].config["init_from"] == str(start)


def test_one_that_fails_does_not_keep_the_others_from_their_turn(tmp_path, capsys):
    config = scripted_config(tmp_path, seeds=3, generations=2, test_episodes=1, strategy=f"{__name__}:OutOfLuck")
    top = top_of(tmp_path)
    with pytest.raises(TrainingError, match="1 of 3 seeds, the last of them by: generation 2: out of luck"):
        execute_all(prepare(config))
    said = capsys.readouterr().out.splitlines()
    assert f"stopped         {top / 'seed1'}: generation 2: out of luck" in said
    assert any(line.startswith("2 runs ") for line in said)
    assert said[-1].startswith("what helps      a new run with other step sizes (--lr, --sigma); ")
    done = [newest_checkpoint(top / f"seed{seed}" / "checkpoint")[0].progress.generation for seed in range(3)]
    assert done == [2, 1, 2]
    assert load_policy(top / "seed2" / "best.dat", ["tests.scripted"]).provenance["seed"] == 2
