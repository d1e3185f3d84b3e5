"""What ends a trial: an environment that fails ends the sweep too, a search that diverges only the trial. Odd names."""

from types import SimpleNamespace

import numpy as np
import pytest
from optuna.trial import TrialState

from hebbes.programs.sweeps import finals, trials
from hebbes.programs.sweeps.jobs import execute_briefly
from hebbes.recording.console import Console
from hebbes.training.advice import TrainingError
from hebbes.training.prepare import prepare
from tests.programs.sweeps import DONE, open_sweep, run
from tests.training.scripted_runs import make_scripted_config


def test_an_environment_that_fails_stops_a_sweep_and_a_search_that_diverges_does_not(tmp_path):
    (broken,) = prepare(make_scripted_config(tmp_path, run_name="broken", env_kwargs={"raise_at": 2}))
    with pytest.raises(TrainingError, match="generation 1: every member failed: RuntimeError: scripted failure"):
        execute_briefly(broken, "broken", Console())
    rates = {"learning_rate": 1e39, "learning_rate_decay": 1.0, "observation_normalization": False}
    (diverging,) = prepare(make_scripted_config(tmp_path, run_name="diverging", **rates))
    assert execute_briefly(diverging, "diverging", Console()) is None


def test_values_that_do_not_fit_together_end_a_trial_and_not_the_sweep(tmp_path):
    study, output = run(tmp_path, trials=3, finalists=0, search="population_size=uniform:20:23")
    assert {each.state for each in study.trials} <= {*DONE}
    left_out = [each.number for each in study.trials if not study.find_trial_folder(each.number).exists()]
    assert left_out == [each.number for each in study.trials if each.params["population_size"] % 2]
    assert output.count("left out: ") == len(left_out) > 0


def test_nor_do_values_that_only_the_run_refuses(tmp_path):
    study, output = run(tmp_path, trials=3, finalists=0, sampler="low_rank", search="rank=choice:1:64")
    refused = [each.number for each in study.trials if each.params["rank"] == 64]
    assert output.count("left out: ") == len(refused) > 0
    assert [each.state in DONE for each in study.trials] == [True] * 3


@pytest.mark.slow
def test_finals_that_all_diverge_make_no_preset(tmp_path, monkeypatch):
    monkeypatch.setattr(finals, "execute_briefly", lambda *arguments: None)
    with pytest.raises(TrainingError, match="no finalist was completed"):
        run(tmp_path, trials=1, final_seeds=1)
    assert not list(tmp_path.rglob("best.yaml"))


@pytest.mark.slow
def test_finalists_have_different_settings(tmp_path):
    options = {"population_size": 16, "learning_rate": 0.1, "weight_decay": 0, "weight_penalty": 0}
    options |= {"search": "sigma=choice:0.3:0.4", "trials": 6, "finalists": 3, "final_seeds": 1}
    study, _ = run(tmp_path, **options)
    assert len(study.best_trials) >= 3 and len(study.results) <= 1 + 2


@pytest.mark.slow
def test_a_trial_with_the_settings_of_the_start_is_no_finalist_of_its_own(tmp_path):
    study, _ = run(tmp_path, trials=1, final_seeds=1, population_size=16, weight_decay=0, weight_penalty=0)
    assert study.best_trials and list(study.results) == ["start seed 1"]


def test_the_study_is_in_the_folder_of_the_sweep_whatever_that_is_called(tmp_path):
    open_sweep(folder=tmp_path, run_name="lr?%20")
    assert [path.name for path in (tmp_path / "CartPole-v1" / "sweeps").iterdir()] == ["lr?%20"]
    assert (tmp_path / "CartPole-v1" / "sweeps" / "lr?%20" / "study.db").exists()


def test_a_trial_whose_last_evaluation_failed_has_no_return(tmp_path, monkeypatch):
    def execute(run, name, console, on_row):
        on_row({"eval_return": 500.0, "env_steps": 2000})
        return SimpleNamespace(metrics={"eval_return": np.array([500.0, np.nan])})

    monkeypatch.setattr(trials, "execute_briefly", execute)
    study, output = run(tmp_path, trials=1, finalists=0)
    assert [each.state for each in study.trials] == [TrialState.PRUNED]
    assert "return -" in output
