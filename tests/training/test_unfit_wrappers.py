"""A user's wrapper that returns something other than an env step is named in one line, before the run and during it."""

import numpy as np
import pytest

from hebbes import evaluate, load_policy
from hebbes.contracts import errors
from hebbes.contracts.engine import EngineError
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.shape_checks import unchecked
from tests.training.scripted_runs import make_scripted_config

WRONG_ENV_STEPS = {
    "StepsToNothing": "step must return an EnvStep, got NoneType",
    "RewardsInList": "rewards must be an array of numbers of shape (3,), got list",
    "RewardsInColumn": "rewards must be an array of numbers of shape (3,), got float64 of shape (3, 1)",
    "RewardsMasked": "rewards must be an array of numbers of shape (3,), got MaskedArray",
    "RewardTooFew": "rewards must be an array of numbers of shape (3,), got float64 of shape ",
    "RowTooFew": "observations must be an array of numbers of shape (3, 2), got float32 of shape ",
    "IntegersTerminate": "terminated must be bool of shape (3,), got int64 of shape (3,)",
    "NarrowObservations": "observations must be an array of numbers of shape (3, 2), got float32 of shape (3, 1)",
}
"""Wrapper -> what is wrong with an env step of three sub-environments."""


def find_complaint(name, count):
    """What is wrong with an env step of so many sub-environments."""
    return f"wrappers 'unfit_wrappers:{name}' cannot be used: {WRONG_ENV_STEPS[name].replace('(3', f'({count}')}"


@unchecked()
@pytest.mark.parametrize("name", WRONG_ENV_STEPS)
def test_before_the_run_nothing_is_written(name, tmp_path):
    with pytest.raises(ValueError) as refused:
        prepare(make_scripted_config(tmp_path, wrappers=(f"unfit_wrappers:{name}",)))
    assert find_complaint(name, 1) in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("names", [("HidesTheEnd", "Forwards"), ("Forwards", "HidesTheEnd")])
def test_one_that_hides_the_end_of_an_episode_is_named(names, tmp_path):
    wrappers = tuple(f"unfit_wrappers:{name}" for name in names)
    (run,) = prepare(make_scripted_config(tmp_path, wrappers=wrappers, engine="in_process"))
    line = r"^wrappers 'unfit_wrappers:HidesTheEnd' cannot be used: EndedError: active names sub-environments whose ep"
    with pytest.raises(EngineError, match=line):
        execute(run)


OUTSIDE = {"ours": {"early_stop_negative_streak": 3}, "users": {"wrappers": ("unfit_wrappers:Forwards",)}}
"""What is put on outside of a user's wrapper."""


@unchecked()
@pytest.mark.parametrize("from_call", [0, 12])
@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("name", ["StepsToNothing", "RewardsInList"])
def test_the_wrapper_is_named_that_returned_it_and_none_around_it(name, outside, from_call, tmp_path):
    options = {**OUTSIDE[outside], "population_size": 2, "engine": "in_process", "eval_every": 100}
    options["wrappers"] = ({f"unfit_wrappers:{name}": {"from_call": from_call}}, *options.get("wrappers", ()))
    with pytest.raises((ValueError, EngineError)) as refused:
        (run,) = prepare(make_scripted_config(tmp_path, **options))
        execute(run)
    assert find_complaint(name, 3 if from_call else 1) in str(refused.value)
    assert "Forwards" not in str(refused.value)


@unchecked()
def test_a_wrapper_reads_and_writes_what_another_one_has(tmp_path):
    names = ("Counts", "Scales", "ReadsAndWrites")
    options = {"wrappers": tuple(f"unfit_wrappers:{name}" for name in names), "generations": 1}
    (run,) = prepare(make_scripted_config(tmp_path, **options))
    assert execute(run).is_complete


def test_a_wrapper_is_named_for_its_helper(tmp_path):
    with pytest.raises(ValueError, match=r"'unfit_wrappers:FailsInHelper' cannot be used: ZeroDivisionError"):
        prepare(make_scripted_config(tmp_path, wrappers=("unfit_wrappers:FailsInHelper",)))


@unchecked()
def test_the_first_observations_are_looked_at_too(tmp_path):
    with pytest.raises(ValueError, match=r"'unfit_wrappers:StartsWithList' .*: observations must be .*, got list"):
        prepare(make_scripted_config(tmp_path, wrappers=("unfit_wrappers:StartsWithList",)))


@unchecked()
@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "in_process") for name in WRONG_ENV_STEPS), ("RowTooFew", "workers")]
)
def test_during_the_run_the_last_generation_is_saved(name, engine, tmp_path):
    wrapper = {f"unfit_wrappers:{name}": {"from_call": 12}}  # in generation 3, whose episodes have five env steps
    options = {"wrappers": (wrapper,), "population_size": 2, "engine": engine, "eval_every": 100}
    (run,) = prepare(make_scripted_config(tmp_path, **options))
    with pytest.raises(EngineError) as stopped:
        execute(run)
    assert find_complaint(name, 3) in str(stopped.value)
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 2


@pytest.mark.parametrize("members", [4, 20])  # the memory of 20 is measured
def test_one_that_fails_to_close_costs_a_line(members, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(errors, "_shown", set())
    options = {"wrappers": ("unfit_wrappers:FailsToClose",), "test_episodes": 2, "population_size": members}
    (run,) = prepare(make_scripted_config(tmp_path, **options))
    trained = execute(run)
    assert trained.is_complete
    assert "a wrapper failed to close" in capsys.readouterr().err
    errors._shown.clear()
    played = evaluate(trained.best, episodes=2, threads=1, imports=["unfit_wrappers", "tests.scripted"])
    assert np.isfinite(played.returns).all()
    assert "a wrapper failed to close" in capsys.readouterr().err


def test_one_that_fails_to_close_does_not_end_an_episode_of_make_env(tmp_path):
    (run,) = prepare(make_scripted_config(tmp_path, wrappers=("unfit_wrappers:FailsToClose",), test_episodes=0))
    best = execute(run).best
    env = load_policy(best, imports=["unfit_wrappers", "tests.scripted"]).make_env()
    assert [env.reset()[1], env.reset()[1]] == [{"episode": 0}, {"episode": 1}]
    env.close()
