"""The program `sweep` with short trials: what is tried, what is kept, what is refused."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from optuna.trial import TrialState

from hebbes.contracts.option import check_value
from hebbes.contracts.search_space import Choice, LogUniform, Uniform
from hebbes.files.folder_lock import wait_for_lock
from hebbes.files.option_file import read_yaml
from hebbes.options.command_line import resolve_config
from hebbes.programs.sweep import read_options
from hebbes.programs.sweeps import jobs
from hebbes.programs.sweeps.best_settings import format_training_command
from hebbes.programs.sweeps.jobs import execute_briefly, hold_lock, prepare_job
from hebbes.programs.sweeps.study import is_busy
from hebbes.programs.sweeps.sweep_options import find_searched_options, set_params
from hebbes.recording.console import Console
from hebbes.recording.metrics import read_metrics
from hebbes.registry.lookup import list_names
from hebbes.training.owners import list_all_owners
from hebbes.training.prepare import prepare
from hebbes.training.run_status import read_status
from tests.programs.sweeps import DONE, make_arguments, open_sweep, run
from tests.python_process import run_python
from tests.recording.screens import start
from tests.training.scripted_runs import make_scripted_config

DECLARED = [
    (owner, each)
    for trainer in list_names("trainer")
    for owner in list_all_owners(trainer)
    for each in owner.options
    if each.field.metadata.get("search")
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of all runs, the study and the output of a sweep that has ended."""
    top = tmp_path_factory.mktemp("weights")
    return top, *run(top)


def test_every_strategy_and_hybrid_declares_values_that_its_options_can_have():
    for _, each in DECLARED:
        space = each.field.metadata["search"]
        for value in space.values if isinstance(space, Choice) else (space.low, space.high):
            assert check_value(each.declared_in, each.field, value) == value
    with_space = {owner.name for owner, _ in DECLARED}
    assert {*list_names("strategy"), *list_names("algorithm")} <= with_space


@pytest.mark.parametrize("strategy", list_names("strategy"))
def test_the_smallest_and_the_largest_values_of_a_strategy_fit_together(strategy):
    config = resolve_config("static", [("strategy", [strategy]), ("environment", ["CartPole-v1"])])
    searched = find_searched_options(config, ())
    for end in (0, -1):
        spaces = {each.name: each.space for each in searched}
        ends = {name: s.values if isinstance(s, Choice) else (s.low, s.high) for name, s in spaces.items()}
        set_params(config, searched, {name: values[end] for name, values in ends.items()})


@pytest.mark.slow
def test_every_trial_is_a_run_and_the_first_has_the_values_of_the_start(finished):
    top, study, output = finished
    assert [each.state in DONE for each in study.trials] == [True] * 6
    folder = top / "CartPole-v1" / "sweeps" / "openai_es"
    for each in study.trials:
        status = read_status(study.find_trial_folder(each.number))
        assert status.state == ("ended" if each.state == TrialState.COMPLETE else "stopped")
        for name, value in each.params.items():
            assert status.run.options[name] == pytest.approx(value, rel=5e-3)
            assert isinstance(value, int) or status.run.options[name] == float(f"{value:.3g}")
        metrics = read_metrics(status.folder / "metrics.csv")
        expected = {int(s): r for s, r in zip(metrics["env_steps"], metrics["eval_return"], strict=True) if r == r}
        assert each.intermediate_values == expected
        assert each.value == metrics["eval_return"][-1]
    assert study.folder == folder
    first = study.trials[0].params
    assert (first["learning_rate"], first["sigma"]) == (0.1, 0.1)  # of the preset
    assert output.count("trial ") == 6


@pytest.mark.slow
def test_some_trials_are_pruned_and_the_best_is_not(finished):
    states = [each.state for each in finished[1].trials]
    assert TrialState.PRUNED in states
    values = [each.value for each in finished[1].trials if each.state == TrialState.COMPLETE]
    assert finished[1].best_trials[0].value == max(values)


@pytest.mark.slow
def test_the_preset_gives_the_options_of_the_best_and_says_what_was_measured(finished):
    study = finished[1]
    best = study.folder / "best.yaml"
    measured = yaml.safe_load(best.read_text())["measured"]
    assert "of seeds 1 to 2 (" in measured
    assert "means over 2 test episodes after 4,000 env steps" in measured
    assert measured.split("; ")[1].startswith(
        ("the best of 1 finalist of 6", "the start, which is at least as good as 1")
    )
    results = {name: np.mean(values) for name, values in study.results.items()}
    number = study.best_trials[0].number
    names = ("start", f"final{number}")
    assert set(results) == {f"{name} seed {seed}" for name in names for seed in (1, 2)}
    winner = max(names, key=lambda name: np.mean([results[f"{name} seed {seed}"] for seed in (1, 2)]))
    options = read_status(study.folder / winner / "seed1").run.options
    given = [("environment", ["CartPole-v1"]), ("config", [str(best)]), ("seed", ["1"])]
    again = resolve_config("static", given).list_used_options(without=("run", "engine", "logger"))
    assert {name: options[name] for name in again} == again


def test_the_command_that_trains_with_the_best_settings_has_all_that_they_lack(tmp_path):
    _, config = read_options(make_arguments(tmp_path, environment="Scripted-v0", **{"import": "tests.scripted"}), "")
    command = format_training_command(config.change(run={"init_from": "some.dat"}), Path("best.yaml"))
    assert command.endswith("--environment Scripted-v0 --init_from some.dat --config best.yaml --import tests.scripted")


@pytest.mark.slow
def test_a_sweep_that_has_ended_runs_nothing_again(finished):
    top, study, _ = finished
    written = {path: path.stat().st_mtime_ns for path in study.folder.glob("*/metrics.csv")}
    _, output = run(top)
    assert "trial" not in output.replace("trials", "")
    assert {path: path.stat().st_mtime_ns for path in written} == written


@pytest.mark.slow
def test_finals_that_were_tested_otherwise_are_tested_again(tmp_path):
    options = {"trials": 2, "finalists": 1, "final_seeds": 1}
    run(tmp_path, test_episodes=2, **options)
    study, _ = run(tmp_path, test_episodes=3, **{**options, "final_seeds": 2})
    assert {len(returns) for returns in study.results.values()} == {3}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trials(finished, tmp_path):
    again, _ = run(tmp_path, finalists=0)
    assert [each.params for each in again.trials] == [each.params for each in finished[1].trials]
    assert [each.intermediate_values for each in again.trials] == [
        each.intermediate_values for each in finished[1].trials
    ]


@pytest.mark.slow
def test_a_trial_that_lost_its_process_goes_on_where_it_was(finished, tmp_path):
    _, study = open_sweep(tmp_path, trials=1)
    with wait_for_lock(study.folder):
        trial = study.take_trial({}, 1)
        study.sample(trial)
        config = set_params(study.config, study.searched, trial.params)
        lost = prepare_job(config, study.find_trial_folder(0))
    with hold_lock(lost):
        execute_briefly(
            lost, "lost", Console(), lambda row: study.report(trial, row["eval_return"], int(row["env_steps"])) or True
        )
        assert is_busy(lost.folder)
        assert study.take_trial({}, 1) is None  # not while its process has it
    ended, _ = run(tmp_path, trials=1, finalists=0)
    (after,) = ended.trials
    assert after.state == TrialState.COMPLETE
    assert after.params == trial.params
    assert read_metrics(lost.folder / "metrics.csv")["generation"].tolist() == [
        *range(1, 1 + len(after.intermediate_values))
    ]
    assert (lost.folder / "command.txt").read_text().count("hebbes ") == 2


def test_options_that_are_typed_are_not_varied_and_search_adds_others(tmp_path):
    arguments = make_arguments(tmp_path, sigma=0.2, search="episodes_per_member=choice:1:2")
    _, config = read_options([*arguments, "population_size=uniform:2:9", "weight_decay=log:0.1:1"], "")
    found = {each.name: each.space for each in find_searched_options(config, ["sigma=uniform:0.1:1", "lr=log:0.1:1"])}
    assert found["sigma"] == Uniform(0.1, 1.0) and found["learning_rate"] == LogUniform(0.1, 1.0)
    options, config = read_options([*arguments, "weight_decay=log:0.1:1"], "")
    found = {each.name: each.space for each in find_searched_options(config, options.search)}
    assert "sigma" not in found
    assert found["episodes_per_member"] == Choice((1, 2))
    assert found["weight_decay"] == LogUniform(0.1, 1.0)
    assert found["learning_rate"] == LogUniform(0.003, 1.0)


@pytest.mark.parametrize(
    ("space", "drawn", "trained"),
    [
        ("choice:0.99123:0.9999", 0.9999, 0.9999),  # as typed
        ("choice:0.9999:1", 0.9999, 0.9999),  # although 1 is another choice
        ("uniform:0.1:0.9999", 0.987654, 0.988),
        ("uniform:0.99:0.9999", 0.9912345, 0.99123),  # three digits of 0.0099
        ("uniform:0.1:0.9996", 0.99955, 0.99955),  # with three digits, it would be above the bound
    ],
)
def test_a_trial_has_values_of_its_search_space(space, drawn, trained, tmp_path):
    _, config = read_options(make_arguments(tmp_path, sigma=0.2), "")
    searched = [
        each
        for each in find_searched_options(config, [f"learning_rate_decay={space}"])
        if each.name == "learning_rate_decay"
    ]
    changed = set_params(config, searched, {"learning_rate_decay": drawn})
    assert changed.as_options()["learning_rate_decay"] == trained


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"max_env_steps": 7000},
            "storage study.db: it is that of another sweep: max_env_steps is 4000 there, and 7000",
        ),
        ({"strategy": "ars", "run_name": "openai_es"}, "another sweep: strategy is openai_es there, and ars here"),
        ({"sigma": 0.1}, "another sweep: sigma is search 0.01 to 0.5, log there, and 0.1 here"),
        ({"environment": "Acrobot-v1", "storage": "{theirs}"}, "another sweep: environment is CartPole-v1 there"),
        ({"run_name": "mine", "storage": "{theirs}"}, "it is that of a sweep in another folder"),
        ({"storage": "sqlite:///{top}/new.db"}, "it lacks the trials of the sweep in "),
    ],
)
def test_options_and_places_of_another_sweep_are_refused(finished, tmp_path, changes, message):
    top, study, _ = finished
    theirs = f"sqlite:///{study.folder / 'study.db'}"
    changes = {
        name: value.format(theirs=theirs, top=tmp_path) if isinstance(value, str) else value
        for name, value in changes.items()
    }
    with pytest.raises(ValueError, match=message):
        open_sweep(**{"folder": top, **changes})
    assert not (top / "CartPole-v1" / "sweeps" / "mine").exists()


def test_the_help_is_quick_and_has_the_options_of_the_trials_too():
    program = (
        "import sys\n"
        "from hebbes.programs.commands import main\n"
        "sys.argv = ['hebbes', 'sweep', '--help', '--strategy', 'cem']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as ended:\n"
        "    print(ended.code, sorted({'optuna', 'gymnasium', 'numba'} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = run_python("-c", program)
    assert done.stderr == "0 []\n"
    assert "\nsweep:\n" in done.stdout
    for flag in ("--trials", "--storage", "--elite_share", "--max_env_steps"):
        assert f"  {flag} " in done.stdout


@pytest.mark.slow
def test_no_line_of_a_sweep_but_the_command_is_wider_than_80_columns(finished):
    lines = finished[2].splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith(("best settings", "to train"))] == []
    assert len([line for line in lines if line.startswith("trial ")]) == 6


def test_a_long_trial_says_where_it_is_once_in_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "LINE_SECONDS", 0.0)
    study, output = run(tmp_path, trials=1, finalists=0)
    rows = read_metrics(study.find_trial_folder(0) / "metrics.csv")["env_steps"]
    assert output.splitlines()[: len(rows)] == [f"trial 0         {steps:,.0f} of 4,000 env steps" for steps in rows]


def test_the_name_of_a_final_is_apart_from_its_env_steps(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "LINE_SECONDS", 0.0)
    (prepared,) = prepare(make_scripted_config(tmp_path, max_env_steps=45))
    execute_briefly(prepared, "final12 seed 101", Console())
    assert "final12 seed 101 45 of 45 env steps" in capsys.readouterr().out


@pytest.mark.slow
def test_a_sweep_on_a_terminal_shows_what_it_does(tmp_path):
    seen = set()
    program = start("-m", "hebbes", "sweep", *make_arguments(tmp_path, trials=1, final_seeds=1, max_env_steps=60_000))

    def collect(screen):
        seen.update(word for word in ("starting", "trial 0   CartPole-v1", "seed 1   Car") if word in screen.below)
        return False

    program.read(collect)
    assert program.status == 0, program.screen.text
    assert seen == {"starting", "trial 0   CartPole-v1", "seed 1   Car"}
    assert program.screen.below == ""


@pytest.mark.slow
def test_a_quiet_sweep_prints_nothing(tmp_path):
    done = run_python("-m", "hebbes", "sweep", *make_arguments(tmp_path, trials=1, finalists=0), "--quiet")
    assert done.stdout == ""


@pytest.mark.slow
def test_the_file_of_a_sweep_says_what_it_is(finished):
    found = read_yaml(finished[1].folder / "sweep.yaml")
    assert (found["environment"], found["max_env_steps"]) == ("CartPole-v1", 4000)
    assert found["sigma"] == "search 0.01 to 0.5, log"
