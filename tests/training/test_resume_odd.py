"""Resumes of unusual runs, of runs interrupted at an unlucky moment, and of runs whose files have changed."""

import importlib
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hebbes.contracts.randomness import Purpose
from hebbes.files import checksummed_file as checked_file
from hebbes.files.checkpoint import load_newest_checkpoint, save_checkpoint
from hebbes.options.command_line import parse_config
from hebbes.recording.metrics import read_metrics
from hebbes.strategies.openai_es import OpenAIES
from hebbes.training.advice import TrainingError
from hebbes.training.agent_and_environment import make_environment_spec
from hebbes.training.owners import find_owner
from hebbes.training.prepare import prepare
from hebbes.training.run import execute, execute_all
from hebbes.training.run_folder import RunFiles
from tests.training.scripted_runs import (
    OPTIONS,
    SETTINGS,
    change,
    make_config,
    make_resumed_config,
    make_scripted_config,
    meddle,
    read_outcome,
    resume,
    train,
)

IMPORT = ["--import", "tests.scripted"]


class InPlace(OpenAIES):
    """A strategy that overwrites the array that it returned as its mean."""

    @property
    def mean(self):
        self._shown = getattr(self, "_shown", np.empty(len(self._mean), np.float32))
        self._shown[:] = self._mean
        return self._shown


class Growing(OpenAIES):
    """A strategy whose state grows by a number per generation, on which its mean depends."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._lineage = np.empty(0)

    def tell(self, population, results):
        self._lineage = np.append(self._lineage, results.fitness[0])
        self._mean = self._mean + 1e-3 * self._lineage.sum()
        return super().tell(population, results)

    def state_dict(self):
        return {**super().state_dict(), "lineage": self._lineage}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self._lineage = np.array(state["lineage"])


class Spreading(OpenAIES):
    """A strategy whose weights become so large that the sigma of its start would no longer change them."""

    def tell(self, population, results):
        metrics = super().tell(population, results)
        self._mean, self._sigma = self._mean + 1e9, 1e9
        return metrics


class Failing(OpenAIES):
    """A strategy that always stops the run."""

    def tell(self, population, results):
        raise TrainingError("out of luck")


def test_a_run_of_a_version_without_early_stop_counts_grace_resumes_as_it_began(tmp_path):
    config = make_scripted_config(tmp_path, early_stop_negative_streak=3, early_stop_grace_steps=2, generations=1)
    folder = train(config)
    checkpoint, _ = load_newest_checkpoint(folder / "checkpoint")
    options = dict(checkpoint.config)
    del options["early_stop_counts_grace"]
    save_checkpoint(folder / "checkpoint", replace(checkpoint, config=options))
    (folder / "config.yaml").unlink()  # of this version
    flags = ["--resume", str(folder), "--import", "tests.scripted"]
    resumed = parse_config("static", flags, "")
    assert resumed.as_options()["early_stop_counts_grace"]
    assert make_environment_spec(resumed).training_wrappers[0].kwargs["counts_grace"]
    assert not make_environment_spec(config).training_wrappers[0].kwargs["counts_grace"]


def test_a_wrapper_of_ours_by_its_full_name_resumes_too(tmp_path):
    name = "hebbes.wrappers.early_stop:EarlyStop"
    config = make_scripted_config(tmp_path, wrappers=[{name: {"negative_streak": 3}}], generations=1)
    (wrapper,) = make_environment_spec(make_resumed_config(train(config), generations=2)).training_wrappers
    assert (wrapper.name, wrapper.kwargs["negative_streak"], wrapper.kwargs["grace_steps"]) == ("early_stop", 3, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["InPlace", "Growing", "Spreading"])
def test_a_users_strategy_resumes_too(name, tmp_path):
    config = make_scripted_config(tmp_path, strategy=f"{__name__}:{name}", eval_every=4)
    whole = train(change(config, run_name="whole"))
    before = read_outcome(whole)
    allowed = {"import": ("tests.scripted", __name__)}
    assert read_outcome(resume(whole, **allowed)) == before
    folder = train(change(config, generations=4))
    assert read_outcome(resume(folder, **allowed)) == before


def test_a_package_that_is_not_there_is_refused(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    with pytest.raises(ValueError, match="--import: cannot import 'no_such_package'"):
        resume(folder, generations=3, **{"import": ("tests.scripted", "no_such_package")})


def test_every_option_that_a_users_class_has_gained_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    code = "from dataclasses import dataclass\nfrom hebbes.contracts.option import option\n"
    code += (
        "from hebbes.policies.linear import Linear\n@dataclass(frozen=True)\nclass Mine(Linear):\n    own: int = 1\n"
    )
    (tmp_path / "gains_options.py").write_text(code)
    folder = train(make_scripted_config(tmp_path, generations=2, policy="gains_options:Mine"))
    del sys.modules["gains_options"]
    (tmp_path / "gains_options.py").write_text(f"{code}    plain: int = 5\n    declared: int = option(5, 'x')\n")
    importlib.invalidate_caches()
    find_owner.cache_clear()  # as in the new process in which a run is resumed
    parse_config("static", ["--resume", str(folder), *IMPORT, "gains_options"], "")
    assert "the run was saved without plain, declared; using the defaults" in capsys.readouterr().err


@pytest.mark.slow
def test_a_plastic_policy_resumes_too(tmp_path):
    plastic = {"policy": "hebbian", "hidden_sizes": (3,), "update_every": 2}
    config = make_config("hebbian", **{**OPTIONS, **SETTINGS, **plastic, "folder": str(tmp_path)})
    whole = read_outcome(train(change(config, run_name="whole")))
    folder = train(change(config, generations=4))
    flags = ["--resume", str(folder), *IMPORT, "--generations", "9"]
    again = parse_config("hebbian", flags, "")
    assert read_outcome(train(again)) == whole
    with pytest.raises(ValueError, match=r"was made by python train_hebbian.py; resume it with that"):
        parse_config("static", flags, "")


@pytest.mark.parametrize("purpose", [Purpose.TRAINING, Purpose.EVALUATION])
@pytest.mark.parametrize("generation", [3, *(pytest.param(each, marks=pytest.mark.slow) for each in (0, 8))])
def test_interrupted_in_the_middle_of_a_generation(generation, purpose, tmp_path):
    config = make_scripted_config(tmp_path, eval_every=4, checkpoint_every=100)
    whole = read_outcome(train(change(config, run_name="whole")))
    (run,) = prepare(config)

    def interrupt(context, rollouts):
        if context.generation >= generation and context.purpose is purpose:
            raise KeyboardInterrupt

    meddle(run, interrupt)
    with pytest.raises(KeyboardInterrupt):
        execute(run)
    assert read_outcome(resume(run.folder)) == whole


def test_interrupted_in_the_last_save_it_is_saved_all_the_same(tmp_path, monkeypatch):
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=100, checkpoint_every=100))
    save, struck = RunFiles.save, []

    def interrupt_once(self, checkpoint, metrics):
        if checkpoint.progress.units == 9 and not struck:
            struck.append(True)
            raise KeyboardInterrupt
        save(self, checkpoint, metrics)

    monkeypatch.setattr(RunFiles, "save", interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        execute(run)
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 9


def test_a_checkpoint_of_a_newer_version_is_refused_and_kept(tmp_path, monkeypatch):
    folder = train(make_scripted_config(tmp_path, generations=3))
    monkeypatch.setitem(checked_file.FORMAT_VERSIONS, "checkpoint", 3)  # as the versions before the trainer's values
    before = sorted(path.read_bytes() for path in (folder / "checkpoint").iterdir())
    with pytest.raises(ValueError, match=r"00000003.ckpt: format version 4, .* up to 3; update hebbes"):
        resume(folder)
    assert sorted(path.read_bytes() for path in (folder / "checkpoint").iterdir()) == before


@pytest.mark.slow
def test_a_checkpoint_under_another_number_is_passed_over(tmp_path, capsys):
    whole = read_outcome(train(make_scripted_config(tmp_path, run_name="whole")))
    folder = train(make_scripted_config(tmp_path, generations=3))
    (folder / "checkpoint" / "00000003.ckpt").rename(folder / "checkpoint" / "00000008.ckpt")
    assert read_outcome(resume(folder)) == whole
    assert "00000008.ckpt: of another name: it holds the state after 3" in capsys.readouterr().err


@pytest.mark.slow
def test_a_checkpoint_of_another_run_is_refused_until_it_is_moved_away(tmp_path):
    whole = read_outcome(train(make_scripted_config(tmp_path, run_name="whole")))
    other = train(make_scripted_config(tmp_path, run_name="other", seed=5, generations=4))
    folder = train(make_scripted_config(tmp_path, generations=3))
    copied = shutil.copy(other / "checkpoint" / "00000004.ckpt", folder / "checkpoint")
    line = "seed is 5 in the newest checkpoint and 0 in config.yaml: one of them was edited, or is of another run; "
    with pytest.raises(ValueError, match=f"{line}if the checkpoint is right, move config.yaml away$"):
        resume(folder)
    Path(copied).unlink()
    assert read_outcome(resume(folder)) == whole


@pytest.mark.parametrize("text", [None, "strategy: openai_es\n", "threads: 7\n"])
def test_a_config_file_without_the_options_of_the_run_says_nothing_about_it(text, tmp_path, capsys):
    folder = train(make_scripted_config(tmp_path, generations=2))
    (folder / "config.yaml").unlink()
    if text is not None:
        (folder / "config.yaml").write_text(text)
    parse_config("static", ["--resume", str(folder), *IMPORT], "")
    assert capsys.readouterr().err == ""
    resume(folder)
    assert "seed: 0" in (folder / "config.yaml").read_text()


def test_a_pipe_for_a_config_file_is_not_read(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    (folder / "config.yaml").unlink()
    os.mkfifo(folder / "config.yaml")
    make_resumed_config(folder)


def test_folders_and_pipes_among_the_checkpoints_do_no_harm(tmp_path):
    whole = read_outcome(train(make_scripted_config(tmp_path, run_name="whole")))
    folder = train(make_scripted_config(tmp_path, generations=3))
    os.mkfifo(folder / "checkpoint" / "00000004.ckpt")  # reading it would wait forever
    (folder / "checkpoint" / "00000000.ckpt").mkdir()
    (folder / ".x.tmp").mkdir()
    (folder / "checkpoint" / "00000004.ckpt").rename(folder / "checkpoint" / "00000044.ckpt")
    assert read_outcome(resume(folder)) == whole


def test_metrics_that_are_gone_begin_again_and_damaged_ones_prevent_the_resume(tmp_path, capsys):
    folder = train(make_scripted_config(tmp_path, generations=4))
    lines = (folder / "metrics.csv").read_text().splitlines(keepends=True)
    (folder / "metrics.csv").write_text("".join([*lines[:2], "2,\x00\n", *lines[3:]]))
    with pytest.raises(ValueError, match=r"metrics.csv: row 2 has 2 cells"):
        resume(folder)
    (folder / "metrics.csv").unlink()
    resume(folder)
    assert capsys.readouterr().err.count("metrics.csv lacks the rows before generation 5\n") == 1
    assert read_metrics(folder / "metrics.csv")["generation"].tolist() == [5, 6, 7, 8, 9]


def test_a_file_without_metrics_prevents_the_resume(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    (folder / "metrics.csv").write_text("precious\n")
    with pytest.raises(ValueError, match=r"metrics.csv has no undamaged row of generation 2; move it away"):
        resume(folder)
    (folder / "metrics.csv").unlink()
    (folder / "metrics.csv").mkdir()
    with pytest.raises(ValueError, match=r"metrics.csv is not a file; move it away"):
        resume(folder)
    (folder / "metrics.csv").rmdir()
    (folder / "kept").touch()
    with pytest.raises(ValueError, match=rf"^{folder}/kept is not a folder; move it away$"):
        resume(folder)


def test_a_folder_where_the_options_belong_is_named_and_not_the_temporary_file(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    (folder / "config.yaml").unlink()
    (folder / "config.yaml").mkdir()
    with pytest.raises(ValueError, match=rf"^cannot resume {folder}: {folder}/config.yaml: Is a directory$"):
        resume(folder, generations=3)


def test_a_resume_with_nothing_to_do_says_so(tmp_path, capsys):
    folder = train(make_scripted_config(tmp_path, generations=2))
    resume(folder, max_env_steps=10)
    assert "nothing to do: 90 of 10 env steps are done" in capsys.readouterr().out


def test_why_a_single_run_was_stopped_is_left_to_the_caller_to_say(tmp_path, capsys):
    runs = prepare(make_scripted_config(tmp_path, strategy=f"{__name__}:Failing"))
    with pytest.raises(TrainingError, match="out of luck"):
        execute_all(runs)
    said = capsys.readouterr().out
    assert "out of luck" not in said
    assert said.splitlines()[-1].startswith("to go on")
