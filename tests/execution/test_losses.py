"""Lost workers, with answers in any order. The workers are scripted objects, not processes."""

from signal import SIGKILL

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hebbes.contracts.engine import EngineError, StartError
from hebbes.execution import dispatch as module
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.jobs import TimeLimit
from tests.execution.toy_transport import HANGS, UNKNOWN, ToyTransport

JOBS = range(5)


def double(host, number, phase):
    return 2 * number


class ScriptedDispatch:
    """A dispatch over scripted workers. `fate(phase, number)`: phase is "start", "warm_up" or "job"."""

    def __init__(self, fate, size, seed=0, timeout=None, extra=0.0):
        self.transport = ToyTransport(lambda: None, size)
        self.transport.fate = lambda function, call: fate(*reversed(call)) if call else fate("start", None)
        self.transport.rng = np.random.default_rng(seed)
        self.dispatch, self.timeout, self.extra = Dispatch(self.transport), timeout, extra

    def do_jobs(self):
        """The answers to all jobs, or the reasons for which they were given up."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module.time, "monotonic", lambda: self.transport.now)
            tickets = {self.submit(number): number for number in JOBS}
            return {tickets[ticket]: answer for ticket, answer in (self.dispatch.collect(tickets) for _ in JOBS)}

    def submit(self, number):
        limit = None
        if self.timeout is not None:
            limit = TimeLimit(self.timeout, "too late", (number, "warm_up"), extra_seconds=self.extra)
        return self.dispatch.submit(double, number, "job", home=("job", number), limit=limit, give_up=str)


def find_given_up(answers):
    """The jobs that were given up. Checks that all others have their answers."""
    assert sorted(answers) == list(JOBS)
    given_up = {number for number, answer in answers.items() if isinstance(answer, str)}
    assert all(answers[number] == 2 * number for number in JOBS if number not in given_up)
    return given_up


orders = {"size": st.sampled_from([1, 2, 5]), "seed": st.integers(0, 2**31)}
some = st.sets(st.sampled_from(JOBS))


@given(bad=some, **orders)
def test_jobs_that_crash_are_given_up_however_many_they_are(bad, size, seed):
    scripted = ScriptedDispatch(lambda phase, number: 3 if number in bad else 0, size, seed)
    for _ in range(2):
        answers = scripted.do_jobs()
        assert find_given_up(answers) == bad
        assert {answers[number] for number in bad} <= {"worker died (exit code 3)"}


@given(bad=some, **orders)
def test_jobs_that_take_too_long_are_given_up_however_many_they_are(bad, size, seed):
    scripted = ScriptedDispatch(
        lambda phase, number: HANGS if phase == "job" and number in bad else 0, size, seed, timeout=20.0
    )
    answers = scripted.do_jobs()
    assert find_given_up(answers) == bad
    assert {answers[number] for number in bad} <= {"too late"}
    assert scripted.transport.now <= len(bad) * 2 * 20.1  # two tries


@given(victim=st.sampled_from(JOBS), kills=st.integers(1, 4), **orders)
def test_kills_from_outside_change_nothing(victim, kills, size, seed):
    outcomes = iter([-SIGKILL] * kills)
    scripted = ScriptedDispatch(lambda phase, number: next(outcomes, 0) if number == victim else 0, size, seed)
    assert not find_given_up(scripted.do_jobs())
    assert next(outcomes, None) is None


@given(seed=orders["seed"])
def test_all_workers_may_be_killed_at_once(seed):
    outcomes = {number: iter([-SIGKILL]) for number in JOBS}
    scripted = ScriptedDispatch(lambda phase, number: next(outcomes[number], 0) if phase == "job" else 0, 5, seed)
    assert not find_given_up(scripted.do_jobs())


@given(bad=some, **orders)
def test_jobs_that_cost_five_workers_for_no_known_reason_are_given_up_however_many_they_are(bad, size, seed):
    scripted = ScriptedDispatch(lambda phase, number: UNKNOWN if number in bad else 0, size, seed)
    answers = scripted.do_jobs()
    assert find_given_up(answers) == bad
    assert {answers[number] for number in bad} <= {"worker died (exit code unknown)"}
    assert scripted.transport.made <= size + 5 * len(bad)


@given(victim=st.sampled_from(JOBS), losses=st.integers(1, 4), **orders)
def test_few_losses_for_no_known_reason_change_nothing(victim, losses, size, seed):
    outcomes = iter([UNKNOWN] * losses)
    scripted = ScriptedDispatch(lambda phase, number: next(outcomes, 0) if number == victim else 0, size, seed)
    assert not find_given_up(scripted.do_jobs())


def test_kills_from_outside_with_answers_in_between_change_nothing():
    outcomes = {number: iter([-SIGKILL] * 4) for number in JOBS}
    scripted = ScriptedDispatch(lambda phase, number: next(outcomes[number], 0) if phase == "job" else 0, size=1)
    assert not find_given_up(scripted.do_jobs())
    assert scripted.transport.made == 21


@given(**orders)
def test_kills_from_outside_without_an_end_stop_the_dispatch(size, seed):
    scripted = ScriptedDispatch(
        lambda phase, number: -SIGKILL if (phase, number) == ("job", 2) else 0, size, seed, timeout=2.0
    )
    with pytest.raises(EngineError, match=r"exit code -9\); memory may be short"):
        scripted.do_jobs()
    assert scripted.transport.made <= 3 * size + 9


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(
    ("outcome", "reason"), [(1, r"worker died \(exit code 1\) at its start"), (HANGS, "worker did not start in 60 s")]
)
def test_workers_that_cannot_start_stop_the_dispatch(outcome, reason, size):
    scripted = ScriptedDispatch(lambda phase, number: outcome, size, timeout=2.0)
    with pytest.raises(
        EngineError, match=f"workers were lost without an answer in between, the last one: {reason}"
    ) as stopped:
        scripted.do_jobs()
    assert isinstance(stopped.value, StartError) is (outcome == 1)
    assert scripted.transport.now < 5.1 * 60


@given(late=st.integers(1, 4), **orders)
def test_workers_that_start_late_are_no_jobs_fault(late, size, seed):
    outcomes = iter([HANGS] * late)
    scripted = ScriptedDispatch(lambda phase, number: next(outcomes, 0) if phase == "start" else 0, size, seed, 2.0)
    assert not find_given_up(scripted.do_jobs())
    assert next(outcomes, None) is None


@pytest.mark.parametrize("size", [1, 2, 5])
def test_jobs_that_never_begin_stop_the_dispatch_in_time(size):
    scripted = ScriptedDispatch(lambda phase, number: HANGS if phase == "warm_up" else 0, size, timeout=2.0)
    with pytest.raises(EngineError, match="the last one: worker did not warm up in 60 s"):
        scripted.do_jobs()
    assert scripted.transport.now < 5.1 * 60


def test_a_warm_up_has_the_extra_time_of_its_limit():
    scripted = ScriptedDispatch(lambda phase, number: HANGS if phase == "warm_up" else 0, 1, timeout=2.0, extra=100.0)
    with pytest.raises(EngineError, match="the last one: worker did not warm up in 160 s"):
        scripted.do_jobs()


@given(bad=st.sets(st.sampled_from(JOBS[1:])), **orders)
def test_jobs_that_do_not_begin_are_given_up_where_others_do(bad, size, seed):
    scripted = ScriptedDispatch(lambda phase, number: HANGS if number in bad else 0, size, seed, 2.0)
    answers = scripted.do_jobs()
    assert find_given_up(answers) == bad
    assert {answers[number] for number in bad} <= {"worker did not warm up in 60 s", "too late"}
    assert scripted.transport.now <= len(bad) * 2 * 60.1
