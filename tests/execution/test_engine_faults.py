"""Simulators that raise, crash or hang, in every engine: only their members fail, and all others go on."""

import os
import re
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import ForeignExitError, say
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.envpool_env import EnvPoolEnv
from hebbes.environments.part_spec import PartSpec
from hebbes.execution import dispatch
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.execution.in_process import InProcess
from hebbes.execution.workers import Workers
from hebbes.policies.linear import Linear
from hebbes.strategies.core.populations import GaussianPopulation
from tests.execution.scripted_tasks import POPULATION, make_context, make_task

ABOVE = 1.4
"""One member's action sum exceeds this in env step 2 of one of its episodes. The tests find out which member."""


def make_thread_engine(**script):
    return InProcess(make_task(**script), chunk_size=4, threads=2)


def evaluate_and_close(engine, *contexts):
    try:
        return [engine.evaluate(POPULATION, each) for each in contexts or (make_context(),)]
    finally:
        engine.close()


def leave(evaluator):
    sys.exit(3)


class DiesWhenUnpickled(int):
    """A seed that ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (5,)


class KillsItsWorker(GaussianPopulation):
    """Ends the process that computes its weighted noise sum."""

    def weighted_noise_sums(self, ids, utilities, powers):
        os._exit(4)


def test_a_simulator_that_raises_fails_its_member_in_every_engine():
    script = {"raise_at": 2, "only_above": ABOVE}
    (sound,) = evaluate_and_close(make_thread_engine())
    for engine in (make_thread_engine(**script), Workers(make_task(**script), chunk_size=4, threads=1)):
        first, second = evaluate_and_close(engine, make_context(), make_context())
        failed = np.isnan(first.returns)
        assert first.faults == {"RuntimeError: scripted failure at env step 2": failed.sum()}
        assert failed.sum() == 1
        assert first.env_steps[failed].tolist() == [2]
        assert np.array_equal(first.returns[~failed], sound.returns[~failed])
        assert first.returns.tobytes() == second.returns.tobytes()


@pytest.mark.parametrize("place", ["constructor", "reset"])
@pytest.mark.parametrize(
    "make", [make_thread_engine, lambda **script: Workers(make_task(**script), chunk_size=4, threads=1)]
)
def test_errors_outside_env_steps_end_the_evaluation_in_every_engine(place, make):
    with pytest.raises(EngineError, match=f"scripted failure in {place}") as caught:
        evaluate_and_close(make(raise_in=place))
    first, *rest = str(caught.value).splitlines()
    assert first.startswith("ValueError: environment 'Scripted-v0' cannot be ")
    assert any("scripted.py" in line for line in rest)


def test_an_error_is_told_of_the_wrapper_that_raised_it_and_of_no_other():
    inner, outer = (
        PartSpec("tests.training.unfit_classes:StepRaises"),
        PartSpec("tests.options.users_classes:Louder"),
    )
    for chain, script, expected in (
        ((inner, outer), {}, rf"wrappers '{inner.name}' cannot be used: scripted in two lines \(.*, line \d+\)"),
        (
            (outer,),
            {"raise_in": "reset"},
            r"ValueError: .* cannot be started: RuntimeError: scripted .*\nTraceback[\s\S]*",
        ),
    ):
        task = make_task(**script)
        engine = InProcess(
            replace(task, environment=replace(task.environment, wrappers=chain)), chunk_size=4, threads=2
        )
        with pytest.raises(EngineError) as caught:
            evaluate_and_close(engine)
        assert re.fullmatch(expected, str(caught.value))


def test_what_envpool_raises_ends_the_evaluation(monkeypatch):
    def fail(self, actions, active):
        raise RuntimeError("pool failure")

    monkeypatch.setattr(EnvPoolEnv, "step", fail)
    cartpole = Task(Agent(Linear((4,), 2), "argmax"), EnvironmentSpec("CartPole-v1", "envpool"), 11)
    with pytest.raises(EngineError, match="RuntimeError: pool failure") as caught:
        engine = InProcess(cartpole, chunk_size=4, threads=2)
        engine.evaluate(GaussianPopulation(np.zeros(8, np.float32), 0.5, 3, 4, 20), make_context())
    assert isinstance(caught.value.__cause__, RuntimeError)


def find_failing_chunk():
    """True for the members of the chunk in which an action sum exceeds ABOVE, found with simulators that raise."""
    (raised,) = evaluate_and_close(make_thread_engine(raise_at=2, only_above=ABOVE))
    edges = [0, 4, 8, 12, 16, 21]
    blamed = np.zeros(21, bool)
    for start, stop in pairwise(edges):
        blamed[start:stop] = np.isnan(raised.returns[start:stop]).any()
    return blamed


@pytest.mark.slow
def test_a_policy_that_crashes_the_simulator_fails_its_chunk_and_the_run_goes_on(capfd):
    (sound,) = evaluate_and_close(make_thread_engine())
    blamed = find_failing_chunk()
    assert 0 < blamed.sum() < 21
    capfd.readouterr()
    engine = Workers(make_task(exit_at=2, only_above=ABOVE), chunk_size=4, threads=2)
    (rollouts,) = evaluate_and_close(engine)
    assert rollouts.faults == {"worker died (exit code 3)": 2 * blamed.sum()}
    assert np.isnan(rollouts.returns).all(axis=1).tolist() == blamed.tolist()
    assert rollouts.returns[~blamed].tobytes() == sound.returns[~blamed].tobytes()
    assert not rollouts.env_steps[blamed].any()
    first = np.flatnonzero(blamed)[0]
    last = first + blamed.sum() - 1
    assert capfd.readouterr().err.splitlines() == [
        *["a worker was replaced: worker died (exit code 3)"] * 2,
        f"members {first} to {last} failed in training at generation 4: worker died (exit code 3)",
    ]


@pytest.mark.slow
def test_a_policy_that_hangs_the_simulator_fails_its_chunk_and_the_run_goes_on():
    (sound,) = evaluate_and_close(make_thread_engine())
    blamed = find_failing_chunk()
    engine = Workers(make_task(hang_at=2, only_above=ABOVE), chunk_size=4, threads=2, episode_timeout=0.1)
    (rollouts,) = evaluate_and_close(engine)
    assert rollouts.faults == {"episode_timeout": 2 * blamed.sum()}
    assert np.isnan(rollouts.returns).all(axis=1).tolist() == blamed.tolist()
    assert rollouts.returns[~blamed].tobytes() == sound.returns[~blamed].tobytes()


@pytest.mark.spawned
def test_a_worker_that_does_not_start_in_time_is_lost(monkeypatch):
    monkeypatch.setattr(dispatch, "MAX_DEATHS", 2)
    monkeypatch.setattr(dispatch, "START_SECONDS", 0.1)
    engine = Workers(make_task(), chunk_size=4, threads=1, episode_timeout=1e6)
    with pytest.raises(EngineError, match=r"2 workers were lost .* the last one: worker did not start in 0\.1 s"):
        evaluate_and_close(engine)


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [1, 2, 5])
def test_chunks_that_all_crash_fail_on_any_number_of_workers(num_workers):
    # three chunks, six deaths
    (rollouts,) = evaluate_and_close(Workers(make_task(exit_at=3), chunk_size=7, threads=num_workers))
    assert rollouts.faults == {"worker died (exit code 3)": 42}
    assert np.isnan(rollouts.returns).all()


def test_workers_that_cannot_work_at_all_stop_the_run(monkeypatch):
    monkeypatch.setattr(dispatch, "MAX_DEATHS", 2)
    engine = Workers(replace(make_task(), seed=DiesWhenUnpickled()), chunk_size=4, threads=1)
    with pytest.raises(EngineError, match=r"2 workers .* the last one: worker died \(exit code 5\) at its start"):
        evaluate_and_close(engine)


def test_a_standard_error_that_is_closed_harms_nobody(monkeypatch):
    class Closed:
        def write(self, text):
            raise BrokenPipeError

    for stderr in (Closed(), None):
        monkeypatch.setattr(sys, "stderr", stderr)
        assert say("a worker was replaced") is None


@pytest.mark.slow
def test_a_sum_that_kills_its_workers_stops_the_run():
    engine = Workers(make_task(), chunk_size=21, threads=1)
    with pytest.raises(EngineError, match=r"worker died \(exit code 4\)"):
        engine.weighted_noise_sums(KillsItsWorker(np.zeros(4, np.float32), 0.5, 3, 4, 20), np.zeros((1, 21)), [1])
    engine.close()


@pytest.mark.parametrize("engine_class", [InProcess, Workers])
def test_an_exit_in_a_job_is_the_same_error_in_every_engine(engine_class):
    engine = engine_class(make_task(), chunk_size=4, threads=1)
    with pytest.raises(ForeignExitError, match=rf"^{__file__}, line \d+, called sys.exit\(3\)$"):
        engine.collect([engine.submit(leave)])
    engine.close()
