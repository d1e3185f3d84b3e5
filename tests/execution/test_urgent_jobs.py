"""When workers get their next jobs: urgent ones go first, also those that follow from an answer."""

import time

import pytest

from hebbes.execution.dispatch import Dispatch
from hebbes.execution.in_process import ThreadTransport
from hebbes.execution.workers import ProcessTransport
from tests.execution.toy_transport import Counter, ToyTransport


def sleep(host, seconds):
    time.sleep(seconds)


@pytest.mark.parametrize("transport", [ToyTransport, ThreadTransport, ProcessTransport])
def test_an_urgent_job_goes_before_those_that_wait(transport):
    dispatch = Dispatch(transport(Counter, 1))
    tickets = [dispatch.submit(sleep, 0.01) for _ in range(4)]
    first, _ = dispatch.collect(tickets)
    urgent = dispatch.submit(sleep, 0.01, urgent=True)
    order = [ticket for ticket, _ in dispatch.collect_each([*tickets[1:], urgent])]
    dispatch.close()
    assert [first, *order] == [tickets[0], urgent, *tickets[1:]]


def test_so_do_those_that_follow_from_two_answers():
    dispatch = Dispatch(ProcessTransport(Counter, 2))
    while dispatch.num_started < 2:
        list(dispatch.collect_each([dispatch.submit(sleep, 0.01) for _ in range(2)]))
    left, urgent = {dispatch.submit(sleep, 0.01) for _ in range(5)}, []
    time.sleep(0.3)  # in which both workers are done with their first ones
    for _ in range(2):
        left.remove(dispatch.collect(left)[0])
        urgent.append(dispatch.submit(sleep, 0.01, urgent=True))
    time.sleep(0.3)
    order = [ticket for ticket, _ in dispatch.collect_each([*left, *urgent])]
    dispatch.close()
    assert sorted(order[:2]) == urgent


def test_a_worker_gets_its_job_when_it_has_started_even_if_nobody_waits_for_that():
    transport = ToyTransport(Counter, 1)
    dispatch = Dispatch(transport)
    ticket = dispatch.submit(sleep, 0.0)
    assert dispatch.collect([ticket], timeout=0.0) is None
    assert len(transport.calls) == 1
