"""How runs end: which files are listed or made again, and what the last line advises."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from hebbes.contracts.engine import NONFINITE_OUTPUT
from hebbes.execution.engine_options import resolve_num_threads
from hebbes.files.policy_file import read_policy_file
from hebbes.recording.base import RunLogger
from hebbes.recording.metrics import read_metrics
from hebbes.training import final_test
from hebbes.training.advice import METRICS_ADVICE, RESUME_ADVICE, TrainingError, advise_environment_fix
from hebbes.training.prepare import prepare
from hebbes.training.run import execute, execute_all
from hebbes.training.run_folder import RunFiles
from tests.training.scripted_runs import change, make_config, make_scripted_config, meddle, read_outcome, resume, train


@pytest.fixture
def config(tmp_path):
    """Options of a short run."""
    return make_scripted_config(tmp_path, generations=2)


def test_what_could_not_be_written_is_not_listed(config, capsys):
    (prepared,) = prepare(config)
    (prepared.folder / "learning_curve.png").mkdir()
    assert execute(prepared).advice == RESUME_ADVICE
    said = capsys.readouterr()
    assert "no learning curve: " in said.err and "learning_curve.png" not in said.out
    listed = [line.split()[-1] for line in said.out.splitlines() if line.startswith(("weights ", "log "))]
    assert [Path(path).name for path in listed] == ["best.dat", "latest.dat", "metrics.csv"]


def test_the_learning_curve_is_drawn_again_whatever_the_clock_says(config):
    folder = train(config)
    curve = folder / "learning_curve.png"
    curve.write_text("old")
    os.utime(curve, (2**33, 2**33))
    resume(folder, generations=4)
    assert curve.read_bytes()[:4] == b"\x89PNG"
    drawn = curve.stat()
    curve.write_text("of this training")
    os.utime(curve, ns=(drawn.st_mtime_ns, drawn.st_mtime_ns))
    resume(folder, generations=4)
    assert curve.read_text() == "of this training"  # no row is new


def test_the_test_after_training_on_a_cluster_uses_the_cores_of_this_machine(config, monkeypatch):
    played, play = [], final_test.play
    monkeypatch.setattr(final_test, "play", lambda *args, **options: played.append(options) or play(*args, **options))
    (prepared,) = prepare(change(config, test_episodes=1, generations=1))
    execute(replace(prepared, config=prepared.config.change(engine={"engine": "ray", "threads": 1000})))
    assert [options["threads"] for options in played] == [resolve_num_threads(-1)]


def test_a_test_that_cannot_be_saved_is_reported(config, capsys):
    (prepared,) = prepare(change(config, test_episodes=1, generations=1))
    (prepared.folder / "test.json").mkdir()
    assert execute(prepared).advice == RESUME_ADVICE
    said = capsys.readouterr()
    assert "no test.json: " in said.err and "best policy     mean " in said.out


def test_a_missing_best_policy_is_one_line_and_no_traceback(config, monkeypatch):
    (prepared,) = prepare(change(config, test_episodes=1, generations=1))
    monkeypatch.setattr(RunFiles, "save", lambda files, checkpoint, metrics: None)
    with pytest.raises(TrainingError, match=r"no test: .*best.dat: no such file"):
        execute(prepared)


def test_a_run_that_its_caller_ends_is_not_evaluated_and_goes_on_as_if_it_had_not_ended(tmp_path):
    whole = train(make_scripted_config(tmp_path, eval_every=2, run_name="whole"))
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=2))
    execute(run, lambda row: row["generation"] == 3)
    scores = read_metrics(run.folder / "metrics.csv")["eval_return"]
    assert np.isnan(scores).tolist() == [True, False, True]
    assert read_outcome(resume(run.folder)) == read_outcome(whole)


@pytest.mark.slow
def test_an_episode_of_the_test_that_takes_too_long_fails(tmp_path, capsys):
    """Training episodes end before the env step that never returns."""
    script = {"rewards": [-1.0], "hang_at": 4, "truncate_at": 9}
    options = {"early_stop_negative_streak": 2, "eval_every": 100, "generations": 1, "test_episodes": 1}
    train(make_scripted_config(tmp_path, env_kwargs=script, episode_timeout=3.0, threads=1, **options))
    assert "the test failed: episode_timeout in 1 episode" in capsys.readouterr().out


def test_what_helps_is_the_last_line_of_a_run_that_was_stopped(config, capsys):
    stops = {
        "learning_rate": {"population_size": 4, "learning_rate": 1e39, "learning_rate_decay": 1.0},
        "nan": {"env_kwargs": {"nan_at": 2, "truncate_at": 5}},
        "raise": {"env_kwargs": {"raise_at": 2, "truncate_at": 5}},
        "nan_reward": {"env_kwargs": {"rewards": [1e308], "truncate_at": 5}},
        "clock": {"env_kwargs": {"nan_at": 2, "truncate_at": 5}, "threads": 1, "episode_timeout": 50.0},
    }
    found = {}
    for name, each in stops.items():
        with pytest.raises(TrainingError):
            execute_all(prepare(change(config, **each, run_name=name)))
        found[name] = capsys.readouterr().out.splitlines()[-1]
    steps = "a new run with other step sizes (--learning_rate, --sigma)"
    assert found["learning_rate"] == f"what helps      {steps}"
    for name in ("nan", "raise", "nan_reward"):  # of the environment: other step sizes would not help
        assert found[name].startswith("what helps      mend the environment, then python ")
        assert found[name].endswith(f"{name} --import tests.scripted")
    either = advise_environment_fix({NONFINITE_OUTPUT: 3}, config)
    assert either == f"what helps      {steps}; or mend the environment, then {{resume}}"
    plastic = advise_environment_fix({NONFINITE_OUTPUT: 3}, make_config("hebbian", environment="CartPole-v1"))
    assert plastic.startswith("what helps      a new run with another --normalization of plastic weights, or other ")
    assert found["clock"].startswith("what helps      mend the environment, ")  # time was not the reason


@dataclass(eq=False)
class Fragile(RunLogger):
    """Fails in generation 2."""

    def write(self, row):
        if row["generation"] == 2:
            raise RuntimeError("scripted")


def test_a_finished_run_whose_logger_failed_says_which_rows_are_lost(config, capsys):
    name = f"{__name__}:Fragile"
    assert not execute_all(prepare(change(config, loggers=(name,))))
    said = capsys.readouterr().out.splitlines()
    assert said[-2:] == [f"lost            rows of logger {name!r} from generation 2 on", METRICS_ADVICE]
    assert not [line for line in said if line.startswith("to go on")]


@pytest.fixture
def finished(tmp_path, capsys):
    """The folder of a finished run that was tested, and the line on its test."""
    execute_all(prepare(make_scripted_config(tmp_path, generations=3, test_episodes=2)))
    return tmp_path / "Scripted-v0" / "run", _read_test_line(capsys)


def _read_test_line(capsys):
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("best policy"))
    return line


def _resume_and_list_changes(folder, **changes):
    """Resumes a run; returns the names of the files in its folder that were replaced."""
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    resume(folder, **changes)
    return {path.name for path in folder.iterdir() if path.stat().st_ino != before.get(path.name)}


def test_a_finished_run_is_neither_tested_nor_drawn_again(finished, capsys):
    folder, line = finished
    changed = _resume_and_list_changes(folder, generations=2, test_episodes=2)
    assert not changed & {"test.json", "learning_curve.png"}
    assert _read_test_line(capsys) == line


@pytest.mark.parametrize("lost", ["test.json", "learning_curve.png"])
@pytest.mark.parametrize("damage", ["gone", "empty"])
def test_what_a_finished_run_lacks_is_made_again(lost, damage, finished, capsys):
    folder, line = finished
    (folder / lost).unlink()
    if damage == "empty":
        (folder / lost).touch()
        os.utime(folder / lost, (0, 0))
    changed = _resume_and_list_changes(folder, generations=3, test_episodes=2)
    assert changed & {"test.json", "learning_curve.png"} == {lost}
    assert _read_test_line(capsys) == line


@pytest.mark.slow
def test_another_test_than_that_of_the_folder_is_played(finished, capsys):
    folder, line = finished
    assert "test.json" in _resume_and_list_changes(folder, generations=3, test_episodes=2, episode_timeout=60.0)
    assert _read_test_line(capsys) == line
    assert "test.json" in _resume_and_list_changes(folder, generations=3, test_episodes=3)
    assert _read_test_line(capsys) != line
    resume(folder, generations=5, test_episodes=3)
    best = read_policy_file(folder / "best.dat", ["tests.scripted"])
    assert _read_test_line(capsys).endswith(f"of generation {best.provenance['generation']}")


def test_a_run_shortened_before_its_first_evaluation_is_evaluated(tmp_path, capsys):
    folder = train(make_scripted_config(tmp_path, generations=2, run_name="whole", eval_every=100))
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=100, checkpoint_every=1))

    def interrupt(context, rollouts):
        if context.generation == 2:
            raise KeyboardInterrupt

    meddle(run, interrupt)
    with pytest.raises(KeyboardInterrupt):
        execute(run)
    assert not (run.folder / "best.dat").exists()
    resume(run.folder, generations=2, test_episodes=1)
    assert (run.folder / "best.dat").read_bytes() == (folder / "best.dat").read_bytes()
    assert _read_test_line(capsys).endswith("of generation 2")
