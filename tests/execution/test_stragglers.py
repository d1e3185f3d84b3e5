"""Late jobs and workers that hang. The workers are scripted objects, and the clock is theirs."""

import re

import pytest

from hebbes.execution import dispatch as module
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.jobs import TimeLimit
from hebbes.execution.stragglers import Stragglers
from tests.execution.toy_transport import HANGS, STOPPED, ToyTransport


def double(host, number):
    return 2 * number


@pytest.fixture
def transport(monkeypatch):
    made = ToyTransport(lambda: None, 2)
    monkeypatch.setattr(module.time, "monotonic", lambda: made.now)
    return made


def hang_once(transport, number):
    """The first call with this argument hangs."""
    outcomes = iter([HANGS])
    transport.fate = lambda function, arguments: next(outcomes, 0) if arguments == (number,) else 0


def test_the_job_of_a_worker_that_hangs_is_done_by_another(transport):
    hang_once(transport, 2)
    dispatch = Dispatch(transport)
    tickets = {dispatch.submit(double, number): number for number in range(5)}
    answers = {tickets[ticket]: answer for ticket, answer in dispatch.collect_each(list(tickets))}
    assert answers == {number: 2 * number for number in range(5)}
    assert dispatch.num_sent_again == 1
    assert 10 < transport.now < 13


def test_without_experience_it_waits_longer_and_starts_a_worker_for_it(transport):
    hang_once(transport, 3)
    dispatch = Dispatch(transport)
    assert dispatch.collect([dispatch.submit(double, 3)])[1] == 6
    assert 60 < transport.now < 63
    assert transport.made == 2


def test_the_second_answer_is_ignored_and_its_worker_is_free_again(transport):
    hang_once(transport, 2)
    dispatch = Dispatch(transport)
    tickets = [dispatch.submit(double, number) for number in range(3)]
    assert len(list(dispatch.collect_each(tickets))) == 3
    (hung,) = [worker for worker in transport.alive if worker.outcome == HANGS]
    hung.outcome = 0
    assert sorted(answer for _, answer in dispatch.collect_each([dispatch.submit(double, n) for n in range(20)])) == [
        2 * number for number in range(20)
    ]
    assert transport.made == 2 and hung.call[2] != (2,)
    assert dispatch.num_undone == 0


def test_a_worker_that_hangs_with_a_job_that_is_done_may_be_lost(transport):
    hang_once(transport, 2)
    dispatch = Dispatch(transport)
    assert len(list(dispatch.collect_each([dispatch.submit(double, number) for number in range(3)]))) == 3
    (hung,) = [worker for worker in transport.alive if worker.outcome == HANGS]
    hung.outcome = 3
    assert len(list(dispatch.collect_each([dispatch.submit(double, number) for number in range(9)]))) == 9
    assert hung not in transport.alive


def do_jobs(dispatch, number):
    answers = dispatch.collect_each([dispatch.submit(double, number) for number in range(number)])
    assert sorted(answer for _, answer in answers) == [2 * number for number in range(number)]


def do_jobs_with_a_worker_that_hangs(transport, seconds):
    """Some jobs, one of which hangs and is done by another worker, in this time. Then another one hangs. The worker."""
    transport.num_workers = 3
    hang_once(transport, 2)
    dispatch = Dispatch(transport)
    do_jobs(dispatch, 3)
    (hung,) = [worker for worker in transport.alive if worker.outcome == HANGS]
    for seat in dispatch._seats.values():
        for call in seat.calls.values():
            call.job.seconds = seconds
    transport.now = 61
    hang_once(transport, 4)  # so that nobody answers for a while
    do_jobs(dispatch, 9)
    return hung


def test_a_worker_that_hangs_with_a_job_that_is_done_is_replaced(transport, capsys):
    assert do_jobs_with_a_worker_that_hangs(transport, 5.0) not in transport.alive
    message = r"a worker was replaced: worker has not answered for 6\d s, and another one took 5 s\n"
    assert re.fullmatch(message, capsys.readouterr().err)


def test_a_slow_worker_is_left_alone_where_the_other_one_took_long_too(transport):
    assert do_jobs_with_a_worker_that_hangs(transport, 12) in transport.alive


@pytest.mark.parametrize("num_workers", [1, 3])
def test_workers_that_are_stopped_are_replaced_even_if_they_are_all(transport, num_workers):
    transport.num_workers, outcomes = num_workers, iter([STOPPED] * num_workers)
    transport.fate = lambda function, arguments: next(outcomes, 0) if arguments else 0
    do_jobs(Dispatch(transport), 6)
    assert 60 < transport.now < 63
    assert transport.made == 2 * num_workers


@pytest.mark.parametrize("num_workers", [1, 2])
def test_workers_with_a_long_job_are_left_alone(transport, num_workers):
    """The only one, or two that have the same job."""
    transport.num_workers = num_workers
    transport.fate = lambda function, arguments: HANGS if arguments else 0
    finish_at(transport, 9000.0)
    do_jobs(Dispatch(transport), 1)
    assert transport.now > 9000 and transport.made == num_workers


def finish_at(transport, seconds):
    """All that hangs goes on at this time."""
    wait = transport.wait

    def wait_or_finish(workers, timeout):
        for worker in transport.alive if transport.now > seconds else ():
            worker.outcome = 0
        return wait(workers, timeout)

    transport.wait = wait_or_finish


def test_when_no_worker_starts_for_long_it_says_so(transport, capsys):
    transport.starts_at_once, transport.fate = False, lambda function, arguments: 0 if arguments else HANGS
    finish_at(transport, 500.0)
    do_jobs(Dispatch(transport), 3)
    assert transport.made == 2
    stranded = "no worker has started; waiting (on a cluster, for a free CPU)"
    assert capsys.readouterr().err == f"{stranded}\nthe work goes on\n"


def test_a_job_with_a_time_limit_is_never_done_twice(transport):
    hang_once(transport, 2)
    dispatch, limit = Dispatch(transport), TimeLimit(500.0, "too late", (0,))
    tickets = [dispatch.submit(double, number, limit=limit) for number in range(3)]
    assert len(list(dispatch.collect_each(tickets))) == 3
    assert transport.now > 500


def test_patience_is_a_multiple_of_the_longest_time_and_never_short():
    stragglers = Stragglers()
    assert stragglers.estimate_patience(double) == 60
    stragglers.add_duration(double, 1.0)
    assert stragglers.estimate_patience(double) == 10
    for seconds in (50.0, *[1.0] * 255):  # as if one job in many was of another kind
        stragglers.add_duration(double, seconds)
        assert stragglers.estimate_patience(double) == 200.0
    stragglers.add_duration(double, 1.0)
    assert stragglers.estimate_patience(double) == 10


def test_a_machine_with_many_workers_may_be_lost_without_an_end(transport):
    """More workers are lost at once than MAX_DEATHS allows."""
    transport.num_workers, outcomes = 40, iter(["machine"] * 40)
    transport.fate = lambda function, arguments: next(outcomes, 0) if arguments else 0
    dispatch = Dispatch(transport)
    tickets = [dispatch.submit(double, number) for number in range(60)]
    assert sorted(answer for _, answer in dispatch.collect_each(tickets)) == [2 * number for number in range(60)]
    assert next(outcomes, None) is None
