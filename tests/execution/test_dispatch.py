"""Submit and collect, on a transport of a few lines, in threads and in processes."""

import operator
import time
from functools import partial
from math import comb

import pytest

from hebbes.contracts.engine import EngineError
from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.in_process import InProcess, ThreadTransport
from hebbes.execution.workers import ProcessTransport
from tests.execution.scripted_tasks import POPULATION, make_context, make_task
from tests.execution.toy_transport import HANGS, ToyTransport

TRANSPORTS = [ToyTransport, ThreadTransport, ProcessTransport]


class Counter:
    """A host that counts its calls."""

    def __init__(self):
        self.count = 0

    def abandon(self):
        pass

    close = abandon


def count_up(host, number):
    host.count += 1
    return number, host.count


def sleep(host, seconds):
    time.sleep(seconds)
    return seconds


def leave(host):
    raise SystemExit(0)


@pytest.fixture(params=TRANSPORTS)
def dispatch(request):
    made = Dispatch(request.param(Counter, 2))
    yield made
    made.close()


class Toy(ChunkEngine):
    transport_class = ToyTransport


def test_another_transport_fits_without_a_change_of_the_dispatch():
    answers = []
    for make in (Toy, InProcess):
        engine = make(make_task(), chunk_size=4, threads=3)
        returns = engine.evaluate(POPULATION, make_context()).returns
        answers.append(
            (returns.tobytes(), engine.weighted_noise_sums(POPULATION, returns.T, [1] * len(returns.T)).tobytes())
        )
        engine.close()
    assert answers[0] == answers[1]


def test_jobs_of_any_function_are_collected_while_others_run(dispatch):
    long = dispatch.submit(sleep, 0.2, home=0)
    short = {dispatch.submit(count_up, number, home=1): number for number in range(5)}
    answers = dict(dispatch.collect(short) for _ in short)
    assert {short[ticket]: answer[0] for ticket, answer in answers.items()} == {number: number for number in range(5)}
    assert dispatch.collect([long]) == (long, 0.2)


def test_what_is_done_first_is_collected_first():
    for transport in (ThreadTransport, ProcessTransport):
        dispatch = Dispatch(transport(Counter, 2))
        late, early = dispatch.submit(sleep, 1.0, home=0), dispatch.submit(sleep, 0.0, home=1)
        assert [dispatch.collect({late, early})[0] for _ in range(2)] == [early, late]
        dispatch.close()


def test_a_job_that_raises_ends_the_dispatch_which_can_begin_again(dispatch):
    for _ in range(2):
        ticket = dispatch.submit(operator.truediv, 1)
        other = dispatch.submit(count_up, 1)
        with pytest.raises(EngineError, match=r"TypeError: unsupported operand type\(s\) for /: 'Counter' and 'int'"):
            dispatch.collect([ticket])
        with pytest.raises(AssertionError, match="collect needs a job"):
            dispatch.collect([other])
        assert dispatch.collect([dispatch.submit(count_up, 7)])[1] == (7, 1)  # in a new host


def test_an_exit_in_a_thread_reaches_the_caller():
    dispatch = Dispatch(ThreadTransport(Counter, 2))
    ticket = dispatch.submit(leave)
    with pytest.raises(SystemExit):
        dispatch.collect([ticket])


def do_rounds(transport, homes, rounds):
    """The numbers of the workers that did each job, one row for each round."""
    dispatch = Dispatch(transport)
    done = []
    for _ in range(rounds):
        tickets = [dispatch.submit(count_up, number, home=home) for number, home in enumerate(homes)]
        transport.calls.clear()
        for _ in tickets:
            dispatch.collect(tickets)
        done.append({arguments[0]: worker for worker, _, arguments in transport.calls})
    return [[row[number] for number in range(len(homes))] for row in done]


def make_even_transport(num_workers):
    """Workers that are equally fast: all of them answer, then all of them get their next job."""
    transport = ToyTransport(Counter, num_workers)
    transport.wait = lambda workers, timeout: [(worker, *worker.receive()) for worker in workers]
    return transport


def test_jobs_return_to_the_worker_that_had_them():
    assert do_rounds(make_even_transport(2), range(6), 3) == [[0, 1, 0, 1, 0, 1]] * 3
    assert do_rounds(make_even_transport(3), range(6), 3) == [[0, 1, 2, 0, 1, 2]] * 3


def test_an_idle_worker_takes_the_last_job_of_another():
    assert do_rounds(make_even_transport(2), [0] * 6, 2) == [[0, 0, 0, 1, 1, 1]] * 2


def test_a_worker_that_hangs_keeps_only_the_job_that_it_has():
    transport = ToyTransport(Counter, 2)
    transport.fate = lambda function, arguments: HANGS if arguments == (0,) else 0
    dispatch = Dispatch(transport)
    tickets = [dispatch.submit(count_up, number, home=0) for number in range(5)]
    assert sorted(dispatch.collect(tickets[1:])[1][0] for _ in range(4)) == [1, 2, 3, 4]


def test_the_number_of_workers_may_change():
    transport = make_even_transport(1)
    dispatch = Dispatch(transport)
    for num_workers, made in ((1, 1), (3, 3), (2, 3)):
        transport.num_workers = num_workers
        tickets = [dispatch.submit(count_up, number, home=number) for number in range(4)]
        assert sorted(dispatch.collect(tickets)[1][0] for _ in tickets) == [0, 1, 2, 3]
        assert transport.made == made


def test_workers_are_started_only_for_jobs():
    transport = make_even_transport(5)
    dispatch = Dispatch(transport)
    assert dispatch.collect([dispatch.submit(count_up, 1)])[1] == (1, 1)
    assert transport.made == 1


def test_a_job_that_is_given_up_may_end_the_dispatch():
    transport = ToyTransport(Counter, 2)
    transport.fate = lambda function, arguments: 4 if arguments else 0
    dispatch = Dispatch(transport)
    ticket = dispatch.submit(count_up, 1)
    with pytest.raises(EngineError, match=r"worker died \(exit code 4\)"):
        dispatch.collect([ticket])
    assert not transport.alive


def test_functions_reach_every_transport_by_their_names(dispatch):
    ticket = dispatch.submit(partial(_call_without_host, comb), 5, 2)
    assert dispatch.collect([ticket])[1] == 10


def _call_without_host(function, host, *arguments):
    return function(*arguments)
