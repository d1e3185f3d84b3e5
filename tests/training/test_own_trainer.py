"""A trainer with options of its own and no strategy needs a line in the table, and nothing else."""

import re
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import pytest

from hebbes.contracts.strategy import SearchMemory
from hebbes.contracts.trainer import SearchSize, TrainerState
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.options.command_line import parse_config
from hebbes.options.presets import PRESETS
from hebbes.programs.train import prepare_runs
from hebbes.recording.console import Console
from hebbes.recording.metrics import read_metrics
from hebbes.registry.tables import TRAINERS
from hebbes.training.advice import TrainingError
from hebbes.training.memory_check import measure_run_size
from hebbes.training.owners import list_fixed_owners
from hebbes.training.run import execute, execute_all
from tests.training.toy_trainers import TOYS, RandomSearch, RandomSearchOptions

ENVIRONMENT = ["--environment", "tests.scripted:Scripted-v0", "--env_kwargs", "{rewards: [1.0], truncate_at: 3}"]
FLAGS = [*ENVIRONMENT, "--threads", "1", "--test_episodes", "0", "--generations", "2", "--eval_every", "1"]


@pytest.fixture(autouse=True)
def random_search(monkeypatch):
    monkeypatch.setitem(TRAINERS, "random", TOYS["random"])
    assert not (PRESETS / "random").exists()


def parse(*arguments):
    return parse_config("random", [*ENVIRONMENT, *arguments], "Searches at random.")


def test_it_is_parsed_trained_and_resumed(tmp_path, capsys):
    flags = [*FLAGS, "--random_search.reach", "0.5", "--folder", str(tmp_path)]
    execute_all(prepare_runs("random", flags, "", Console()))
    (folder,) = (tmp_path / "Scripted-v0").iterdir()
    assert re.fullmatch(r"random-seed0-\d{8}-\d{6}", folder.name)
    saved = load_newest_checkpoint(folder / "checkpoint")[0]
    assert (saved.config["policy"], saved.config["reach"], "strategy" in saved.config) == ("linear", 0.5, False)
    resume = ["--resume", str(folder), "--import", "tests", "--generations", "4"]
    with pytest.raises(ValueError, match=r"reach cannot change when a run is resumed: it is 0\.5 in"):
        prepare_runs("random", [*resume, "--reach", "2"], "", Console())
    execute_all(prepare_runs("random", resume, "", Console()))
    assert read_metrics(folder / "metrics.csv")["try"].tolist() == [1, 2, 3, 4]
    assert "training ended: try 4 of 4 is done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda weights: weights.astype(float), "policy must be float32 of shape (4,), got float64 of shape (4,)"),
        (lambda weights: weights / np.float32(0), "policy must be finite"),
    ],
)
@pytest.mark.parametrize("eval_every", ["1", "9"])
def test_a_policy_that_no_file_can_hold_ends_the_run_before_it_is_saved(spoil, line, eval_every, tmp_path, monkeypatch):
    flags = [*FLAGS, "--folder", str(tmp_path), "--run_name", "a", "--eval_every", eval_every]
    run = prepare_runs("random", flags, "", Console()).prepare(0)
    late = property(lambda self: (spoil(self.weights) if self.score > -inf else self.weights, self.buffers))
    monkeypatch.setattr(RandomSearch, "policy", late)
    with pytest.raises(TrainingError, match=re.escape(f"try 1: {line}")), np.errstate(all="ignore"):
        execute(run)
    assert load_newest_checkpoint(tmp_path / "Scripted-v0" / "a" / "checkpoint")[1] == []


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda result: None, "advance must return a UnitResult (hebbes/contracts/trainer.py), got None"),
        (lambda result: replace(result, env_steps=6.0), "env_steps must be a whole number >= 0, got 6.0"),
        (lambda result: replace(result, metrics={"a,b": 1.0}), "metrics must have names without commas"),
    ],
)
def test_a_result_that_no_file_can_hold_ends_the_run_in_one_line(spoil, line, tmp_path, monkeypatch):
    advance = RandomSearch.advance
    monkeypatch.setattr(RandomSearch, "advance", lambda *arguments: spoil(advance(*arguments)))
    run = prepare_runs("random", [*FLAGS, "--folder", str(tmp_path)], "", Console()).prepare(0)
    with pytest.raises(TrainingError, match=re.escape(line)):
        execute(run)


def test_its_numbers_may_be_those_of_numpy(tmp_path, monkeypatch):
    advance = RandomSearch.advance

    def count_in_numpy(*arguments):
        result = advance(*arguments)
        metrics = {name: np.float32(value) for name, value in result.metrics.items()}
        return replace(result, env_steps=np.int64(result.env_steps), metrics=metrics)

    monkeypatch.setattr(RandomSearch, "advance", count_in_numpy)
    run = prepare_runs("random", [*FLAGS, "--folder", str(tmp_path)], "", Console()).prepare(0)
    execute(run)
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 2


@pytest.mark.parametrize(
    ("arrays", "values", "line"),
    [
        ({}, {"visits": [{0: 2}]}, "the trainer's value 'visits' cannot be saved: its keys must be texts, got 0"),
        ({"m": np.zeros((3, 2)).T}, {}, "array 'm' cannot be saved: it must be contiguous in C order"),
    ],
)
def test_a_state_that_would_come_back_otherwise_is_refused_before_training(arrays, values, line, tmp_path, monkeypatch):
    monkeypatch.setattr(RandomSearch, "get_state", lambda self: TrainerState(arrays, values))
    with pytest.raises((TrainingError, ValueError), match=re.escape(line)):
        execute(prepare_runs("random", [*FLAGS, "--folder", str(tmp_path)], "", Console()).prepare(0))


def test_one_without_a_state_is_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(RandomSearch, "get_state", lambda self: {})
    with pytest.raises(ValueError, match=r"^trainer 'random_search': get_state must return a TrainerState .* a dict$"):
        prepare_runs("random", [*FLAGS, "--folder", str(tmp_path)], "", Console())
    assert not [*tmp_path.glob("*/*")]


def test_what_it_raises_ends_the_run_in_its_name(tmp_path, monkeypatch):
    run = prepare_runs("random", [*FLAGS, "--folder", str(tmp_path)], "", Console()).prepare(0)
    monkeypatch.setattr(RandomSearch, "advance", lambda self, progress, engine: {}["absent"])
    with pytest.raises(TrainingError, match=r"^trainer 'random_search': advance raised KeyError: 'absent'\n"):
        execute(run)


def test_its_options_are_checked_and_no_strategy_has_any(capsys):
    config = parse("--reach", "2", "--max_env_steps", "7")
    assert (config.trainer_options, config.settings) == (RandomSearchOptions(reach=2.0), None)
    assert (config.training.max_env_steps, config.choices.method) == (7, "")
    for flags, message in {
        ("--reach", "-1"): "reach must be a finite number > 0, got -1.0",
        ("--strategy", "ga"): "unknown option --strategy",
        ("--population_size", "8"): "unknown option --population_size",
        ("--policy", "nope"): "unknown policy 'nope'",
        ("--policy", "parts.Loop"): "; a class of yours is package.module:Class",
    }.items():
        with pytest.raises(ValueError, match=re.escape(message)):
            parse(*flags)
    with pytest.raises(SystemExit):
        parse("--help")
    said = capsys.readouterr().out
    assert "\nrandom_search:\n" in said and "\ntraining:\n" in said and "strategy" not in said


def test_its_owner_is_listed_with_those_of_every_run():
    names = [owner.name for owner in list_fixed_owners("random")]
    assert names == ["environment", "random_search", "training", "run", "engine"]


def test_the_memory_check_counts_one_member_and_blames_no_population(tmp_path):
    (run,) = prepare_runs("random", [*FLAGS, "--folder", str(tmp_path)], "", Console())
    search = measure_run_size(run.config, run.task.agent, run.task.environment).search
    assert (search.population_size, search.estimate_memory().state, search.options) == (1, 0, {})


@dataclass(frozen=True, kw_only=True)
class ReplaySize(SearchSize):
    replay_size: int

    def estimate_memory(self):
        return SearchMemory(state=100 * self.replay_size, update=0, population=0)


def test_the_memory_check_names_an_option_of_the_trainer(tmp_path, monkeypatch):
    size = ReplaySize(population_size=1, replay_size=10**15, options={"replay_size": ("replay_size", 1)})
    monkeypatch.setattr(RandomSearch, "measure_search", lambda config, policy: size)
    with pytest.raises(ValueError, match=r"^replay_size 1000000000000000 would take about .* PB .* at most about \d"):
        prepare_runs("random", [*FLAGS, "--folder", str(tmp_path)], "", Console())
    assert not list(tmp_path.iterdir())
