"""Lost workers, with answers in any order. The workers are scripted objects, not processes."""

from signal import SIGKILL

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hebbes.contracts.engine import EngineError, Rollouts
from hebbes.execution import process_engine as workers
from hebbes.execution.process_engine import ProcessEngine
from hebbes.execution.worker_process import Stage, Worker
from tests.execution.scripted_tasks import POPULATION, make_context, make_task

STARTS = [0, 4, 8, 12, 16]
"""First members of the five chunks of 21 members."""

HANGS = "hangs"


class FakeMachine:
    """Replaces the worker processes, the waiting and the clock.

    `fate(phase, start)` is the outcome of a worker's start, warm-up or evaluation of the chunk whose first member is
    `start`: 0 for an answer, an exit code, or HANGS. The random generator draws whose answer comes next.
    """

    def __init__(self, fate, size, seed=0, timeout=None):
        self.fate, self.rng, self.now, self.made = fate, np.random.default_rng(seed), 0.0, 0
        self.engine = ProcessEngine(make_task(), chunk_size=4, workers=size, episode_timeout=timeout)

    def evaluate(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers, "Worker", self.worker)
            patch.setattr(workers, "wait", self.wait)
            patch.setattr(workers.time, "monotonic", lambda: self.now)
            return self.engine.evaluate(POPULATION, make_context())

    def worker(self, _task):
        self.made += 1
        assert self.made < 200, "this goes on for ever"
        return FakeWorker(self.fate)

    def wait(self, actors, timeout):
        ready = [actor for actor in actors if actor.outcome != HANGS]
        if not ready:
            self.now += timeout + 0.001
            return []
        return list(self.rng.permutation(ready)[: self.rng.integers(1, len(ready) + 1)])


class FakeWorker(Worker):
    """A worker, its process and its connection."""

    def __init__(self, fate):
        self.connection = self.process = self
        self.stage = Stage.STARTING
        self.fate, self.outcome, self.value = fate, fate("start", None), None

    def send(self, call):
        _, (_, ids, asked, _) = call
        self.outcome = self.fate("warm_up" if asked.max_episode_steps == 1 else "call", ids.start)
        self.value = Rollouts(
            np.full((len(ids), 2), float(ids.start)), np.ones((len(ids), 2), np.int64), (None,) * len(ids)
        )

    def receive(self):
        return None if self.outcome else (True, self.value)

    def end(self, timeout):
        return None if self.outcome == HANGS else self.outcome

    def is_alive(self):
        return True

    def close(self):
        pass

    join = kill = lambda self, *_: None


def find_failed_chunks(rollouts):
    """First members of the chunks that failed. Checks that all other members have their chunk's answer."""
    owner = np.repeat(STARTS, [4, 4, 4, 4, 5])
    failed = np.isnan(rollouts.returns[:, 0])
    assert np.array_equal(rollouts.returns[~failed, 1], owner[~failed])
    for start in STARTS:
        assert len(set(failed[owner == start])) == 1
    return {start for start in STARTS if failed[start]}


orders = {"size": st.sampled_from([1, 2, 5]), "seed": st.integers(0, 2**31)}
some = st.sets(st.sampled_from(STARTS))


@given(bad=some, **orders)
def test_chunks_that_crash_fail_however_many_they_are(bad, size, seed):
    machine = FakeMachine(lambda phase, start: 3 if start in bad else 0, size, seed)
    for _ in range(2):
        rollouts = machine.evaluate()
        assert find_failed_chunks(rollouts) == bad
        assert rollouts.faults == ({"worker died (exit code 3)": np.isnan(rollouts.returns).sum()} if bad else {})


@given(bad=some, **orders)
def test_chunks_that_take_too_long_fail_however_many_they_are(bad, size, seed):
    machine = FakeMachine(
        lambda phase, start: HANGS if phase == "call" and start in bad else 0, size, seed, timeout=2.0
    )
    rollouts = machine.evaluate()
    assert find_failed_chunks(rollouts) == bad
    assert set(rollouts.faults) == ({"episode_timeout"} if bad else set())
    assert machine.now <= len(bad) * 2 * (2.0 * 5 * 2 + 0.01)  # two tries of five members and two episodes


@given(victim=st.sampled_from(STARTS), kills=st.integers(1, 4), **orders)
def test_kills_from_outside_change_nothing(victim, kills, size, seed):
    outcomes = iter([-SIGKILL] * kills)
    machine = FakeMachine(lambda phase, start: next(outcomes, 0) if start == victim else 0, size, seed)
    assert not find_failed_chunks(machine.evaluate())
    assert next(outcomes, None) is None


def test_kills_from_outside_with_answers_in_between_change_nothing():
    outcomes = {start: iter([-SIGKILL] * 4) for start in STARTS}
    machine = FakeMachine(lambda phase, start: next(outcomes[start], 0) if phase == "call" else 0, size=1)
    assert not find_failed_chunks(machine.evaluate())
    assert machine.made == 21


@given(**orders)
def test_kills_from_outside_without_an_end_stop_the_evaluation(size, seed):
    machine = FakeMachine(
        lambda phase, start: -SIGKILL if (phase, start) == ("call", 8) else 0, size, seed, timeout=2.0
    )
    with pytest.raises(EngineError, match="killed from outside; memory may be short"):
        machine.evaluate()
    assert machine.made <= 3 * size + 9


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(
    ("outcome", "reason"), [(1, r"worker died at its start \(exit code 1\)"), (HANGS, "worker did not start in 60 s")]
)
def test_workers_that_cannot_start_stop_the_evaluation(outcome, reason, size):
    machine = FakeMachine(lambda phase, start: outcome, size, timeout=2.0)
    with pytest.raises(EngineError, match=f"workers were lost without an answer in between, the last one: {reason}"):
        machine.evaluate()
    assert machine.now < 5.1 * 60


@given(late=st.integers(1, 4), **orders)
def test_workers_that_start_late_are_no_chunks_fault(late, size, seed):
    outcomes = iter([HANGS] * late)
    machine = FakeMachine(lambda phase, start: next(outcomes, 0) if phase == "start" else 0, size, seed, 2.0)
    assert not find_failed_chunks(machine.evaluate())
    assert next(outcomes, None) is None


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_simulator_that_never_begins_stops_the_evaluation_in_time(size):
    machine = FakeMachine(lambda phase, start: HANGS if phase == "warm_up" else 0, size, timeout=2.0)
    with pytest.raises(EngineError, match="the last one: simulator did not begin in 60 s"):
        machine.evaluate()
    assert machine.now < 5.1 * 60


@given(bad=st.sets(st.sampled_from(STARTS[1:])), **orders)
def test_a_simulator_that_begins_for_some_members_fails_the_others(bad, size, seed):
    machine = FakeMachine(lambda phase, start: HANGS if start in bad else 0, size, seed, 2.0)
    rollouts = machine.evaluate()
    assert find_failed_chunks(rollouts) == bad
    assert set(rollouts.faults) <= {"simulator did not begin in 60 s", "episode_timeout"}
    assert machine.now <= len(bad) * 2 * 60.1
