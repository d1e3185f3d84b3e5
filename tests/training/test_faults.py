"""When numbers or simulators fail, a run goes on, or stops with the last good generation saved."""

import re
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from hebbes.contracts.engine import EngineError
from hebbes.contracts.randomness import Purpose
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.files.policy_file import read_policy_file
from hebbes.recording.metrics import read_metrics
from hebbes.training.advice import TrainingError
from hebbes.training.lifecycle import Lifecycle
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.training.run_folder import RunFiles
from tests.training.scripted_runs import make_scripted_config, meddle, read_outcome, resume, train

SCRIPT = {"rewards": [0.0], "truncate_at": 5, "action_weight": 1.0}


def make_config(folder, **changes):
    return make_scripted_config(folder, env_kwargs={**SCRIPT, **changes})


def train_until_stopped(config, match, error=TrainingError):
    """Runs until this error stops it; returns the newest checkpoint."""
    (run,) = prepare(config)
    with pytest.raises(error, match=match):
        execute(run)
    return load_newest_checkpoint(run.folder / "checkpoint")[0]


def test_failed_members_are_counted_named_once_and_the_run_goes_on(tmp_path, capsys):
    folder = train(make_config(tmp_path, raise_at=3, only_above=0.5))
    metrics = read_metrics(folder / "metrics.csv")
    assert metrics["generation"][-1] == 9
    assert 0 < metrics["failed_members"].max() < 9
    assert np.isfinite(metrics["return_mean"]).all()
    said = [line for line in capsys.readouterr().out.splitlines() if " failed: " in line]
    reason = "failed: RuntimeError: scripted failure at env step 3 in "
    assert re.search(rf": \d of 8 members( and the mean policy)? {reason}", said[0])
    assert metrics["failed_members"][int(said[0].split()[1].rstrip(":")) - 1] == int(said[0].split()[2])
    assert len(said) <= np.count_nonzero(metrics["failed_members"])


@pytest.mark.slow
def test_when_every_member_fails_the_run_stops_and_can_go_on_in_a_mended_environment(tmp_path):
    whole = read_outcome(train(make_scripted_config(tmp_path, run_name="whole")))
    (run,) = prepare(make_scripted_config(tmp_path))

    def fail_after_four(context, rollouts):
        if context.generation == 4 and context.purpose is Purpose.TRAINING:
            rollouts.returns[:-1] = np.nan
            rollouts.faults["non-finite reward"] = 8

    meddle(run, fail_after_four)
    with pytest.raises(TrainingError, match="generation 5: every member failed: non-finite reward in 8 episodes"):
        execute(run)
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 4
    assert read_outcome(resume(run.folder)) == whole


def test_non_finite_observations_fail_their_members(tmp_path):
    saved = train_until_stopped(
        make_config(tmp_path, nan_at=3), "generation 1: every member failed: non-finite observation in 9"
    )
    assert saved.progress.units == 0


def test_when_all_members_tie_the_returns_change_nothing_and_it_is_said_once(tmp_path, capsys):
    script = {**SCRIPT, "action_weight": 0.0, "rewards": [1.0]}
    folder = train(make_scripted_config(tmp_path, env_kwargs=script, weight_penalty=0.0, generations=4))
    assert capsys.readouterr().out.count("all members have the same fitness, 5: ") == 1
    metrics = read_metrics(folder / "metrics.csv")
    assert metrics["update_norm"].tolist() == [0, 0, 0, 0]


def test_ties_that_come_and_go_are_said_twice(tmp_path, capsys):
    (run,) = prepare(make_scripted_config(tmp_path))

    def tie_at_times(context, rollouts):
        if context.purpose is Purpose.TRAINING and context.generation % 3:
            rollouts.returns[:] = 7

    meddle(run, tie_at_times)
    execute(run)
    line = "all members have the same fitness, 7: it says nothing about the weights"
    said = [each for each in capsys.readouterr().out.splitlines() if line in each]
    assert said == [f"generation 2: {line}", f"generation 5: {line}; this is not said again"]


def test_failures_of_one_kind_are_said_twice_whatever_their_texts(tmp_path, capsys):
    (run,) = prepare(make_scripted_config(tmp_path))

    def fail_at_times(context, rollouts):
        if context.purpose is Purpose.TRAINING and context.generation != 3:
            rollouts.returns[0] = np.nan
            rollouts.faults[f"ValueError: number {context.generation}"] = 1

    meddle(run, fail_at_times)
    execute(run)
    said = [each for each in capsys.readouterr().out.splitlines() if " failed: " in each]
    assert [each.partition(":")[0] for each in said] == ["generation 1", "generation 5"]


def test_a_learning_rate_that_blows_up_stops_at_the_last_finite_weights(tmp_path, recwarn):
    rate = {"learning_rate": 1e39, "learning_rate_decay": 1.0}
    config = make_scripted_config(tmp_path, **rate, observation_normalization=False)
    saved = train_until_stopped(config, "the weights are no longer finite; is learning_rate too large")
    assert [str(each.message) for each in recwarn if each.category is RuntimeWarning] == []
    assert np.isfinite(saved.latest.weights).all()
    assert saved.progress.units == 0


def test_sigma_that_underflows_stops_the_run(tmp_path):
    settings = {"optimizer": "sgd", "learning_rate": 0.2, "sigma_decay": 1e-6, "sigma_min": 0.0}
    saved = train_until_stopped(make_scripted_config(tmp_path, **settings), "no longer changes any float32 weight")
    assert 1 < saved.progress.units < 9
    assert np.isfinite(saved.latest.weights).all()


class Huge(gymnasium.Env):
    """Observations that are finite in float64, but not in the float32 of the networks."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    action_space = Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, share=1.0):
        self.share = share  # of the episodes that have them

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.normal(size=2) * (1e200 if self.np_random.random() < self.share else 1), {}

    def step(self, action):
        return np.zeros(2), float(action[0]), True, False, {}


@pytest.fixture
def make_huge_config(tmp_path):
    gymnasium.register("Huge-v0", Huge)
    yield partial(make_scripted_config, tmp_path, environment="Huge-v0", episode_seeds="independent")
    del gymnasium.registry["Huge-v0"]


def test_observations_too_large_for_float32_fail_their_members(make_huge_config):
    message = "generation 1: every member failed: non-finite observation in 9 episodes"
    assert train_until_stopped(make_huge_config(env_kwargs={}), message).progress.units == 0


def test_they_stay_out_of_the_statistics_of_the_observations(make_huge_config):
    run = train(make_huge_config(env_kwargs={"share": 0.3}, observation_normalization=True))
    failed = read_metrics(run / "metrics.csv")["failed_members"]
    saved = read_policy_file(run / "latest.dat", ["tests.scripted"])
    assert len(failed) == 9 and (failed > 0).any()
    assert np.abs(saved.buffers["observation_mean"]).max() < 1 and saved.buffers["observation_std"].max() < 2


def refuse_saves(monkeypatch, refuse):
    """Calls `refuse(units)`, which may raise, before each save."""
    save = RunFiles.save

    def refuse_or_save(self, checkpoint, metrics):
        refuse(checkpoint.progress.units)
        save(self, checkpoint, metrics)

    monkeypatch.setattr(RunFiles, "save", refuse_or_save)


def forbid(units):
    raise PermissionError(13, "Permission denied", "/checkpoint/x.ckpt")


def test_what_the_disk_refuses_is_said_once_each_time_that_it_begins_and_tried_again(tmp_path, monkeypatch, capsys):
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=100, checkpoint_every=1))

    def refuse(units):
        if units in (3, 4, 5, 7):
            folder = "/run" if units == 3 else "/run/checkpoint"  # best.dat comes last
            raise OSError(28, "No space left on device", f"{folder}/.x{units}.tmp")

    refuse_saves(monkeypatch, refuse)
    execute(run)
    said = [line for line in capsys.readouterr().out.splitlines() if "not saved" in line]
    assert said == [
        "generation 3 not saved (No space left on device: /run); training goes on",
        "generation 7 not saved (No space left on device: /run/checkpoint); training goes on; this is not said again",
    ]
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 9


def test_a_run_whose_end_cannot_be_saved_says_so(tmp_path, monkeypatch):
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=100, checkpoint_every=4))

    def refuse(units):
        if units == 9:
            raise OSError(28, "No space left on device", "/checkpoint/x.ckpt")

    refuse_saves(monkeypatch, refuse)
    with pytest.raises(TrainingError, match=r"generation 9 could not be saved: No space left on device: /checkpoint"):
        execute(run)
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 8


@pytest.mark.parametrize(("ending", "status"), [(SystemExit(143), 1), (KeyError("a user's"), None)])
def test_whatever_ends_a_run_that_cannot_be_saved_a_line_says_so(ending, status, tmp_path, monkeypatch, capsys):
    """Although the same error was printed before. After a signal the status is 1."""
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=100, checkpoint_every=1))

    def end(row):
        if row["generation"] == 5:
            raise ending

    refuse_saves(monkeypatch, forbid)
    with pytest.raises(type(ending)) as raised:
        execute(run, end)
    assert getattr(raised.value, "code", None) == status
    said = [line for line in capsys.readouterr().out.splitlines() if "saved" in line]
    assert said[-1] == "stopped: generation 5 could not be saved: Permission denied: /checkpoint"
    assert "training goes on" in said[0]


def test_a_signal_after_the_folder_was_moved_away_says_what_is_lost(tmp_path, capsys):
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=100, checkpoint_every=4))

    def move_and_end(row):
        if row["generation"] == 6:
            run.folder.rename(tmp_path / "elsewhere")
            raise SystemExit(143)

    with pytest.raises(SystemExit) as ended:
        execute(run, move_and_end)
    assert ended.value.code == 1
    reason = f"No such file or directory: {run.folder}"
    assert f"stopped: generation 6 could not be saved: {reason}\n" in capsys.readouterr().out
    assert load_newest_checkpoint(tmp_path / "elsewhere" / "checkpoint")[0].progress.units == 4


def test_a_simulator_that_cannot_start_stops_the_run_with_its_last_generation(tmp_path):
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=3, eval_episodes=3))

    def fail_in_evaluation(context, rollouts):
        if context.purpose is Purpose.EVALUATION:
            raise EngineError("a simulator cannot be made")

    meddle(run, fail_in_evaluation)
    with pytest.raises(EngineError):
        execute(run)
    saved, _ = load_newest_checkpoint(run.folder / "checkpoint")
    assert saved.progress.units == 2  # the third was not finished, because its evaluation failed
    assert saved.latest.units == 2


def test_evaluation_failing_leaves_no_score_and_no_better_policy(tmp_path):
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=2, generations=4))

    def fail_once(context, rollouts):
        if context.purpose is Purpose.EVALUATION and context.generation == 2:
            rollouts.returns[0] = np.nan

    meddle(run, fail_once)
    execute(run)
    scores = read_metrics(run.folder / "metrics.csv")["eval_return"]
    assert np.isnan(scores[1]) and np.isfinite(scores[3])
    best = read_policy_file(run.folder / "best.dat", ["tests.scripted"]).provenance
    assert (best["generation"], best["score"]) == (4, scores[3])


def test_what_is_lost_is_the_last_unit_that_has_been_evaluated(tmp_path, monkeypatch, capsys):
    (run,) = prepare(make_scripted_config(tmp_path, eval_every=5, checkpoint_every=1))

    def stop(self):
        raise SystemExit(143)

    refuse_saves(monkeypatch, forbid)
    monkeypatch.setattr(Lifecycle, "_evaluate", stop)
    with pytest.raises(SystemExit):
        execute(run)
    said = [line for line in capsys.readouterr().out.splitlines() if "saved" in line]
    assert said[-1] == "stopped: generation 4 could not be saved: Permission denied: /checkpoint"
