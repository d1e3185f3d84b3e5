"""Submit and collect, on a transport of a few lines, in threads and in processes."""

import operator
import os
import signal
import time
from functools import partial
from math import comb
from threading import get_ident

import numpy as np
import pytest

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import ForeignExitError
from hebbes.execution import workers
from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.in_process import InProcess, ThreadTransport
from hebbes.execution.jobs import TimeLimit
from hebbes.execution.workers import ProcessTransport, ProcessWorker, Workers
from tests.execution.scripted_tasks import POPULATION, make_context, make_task
from tests.execution.toy_transport import HANGS, Counter, ToyTransport, count_up

TRANSPORTS = [ToyTransport, ThreadTransport, ProcessTransport]


def sleep(host, seconds):
    time.sleep(seconds)
    return seconds


def name_worker(host):
    time.sleep(0.1)  # in which the other worker can get a job
    return os.getpid(), get_ident()


def leave(host):
    raise SystemExit(0)


@pytest.fixture(params=TRANSPORTS, scope="module")
def dispatch(request):
    """One for all tests, because processes take long to start."""
    made = Dispatch(request.param(Counter, 2))
    yield made
    made.close()


class Toy(ChunkEngine):
    transport_class = ToyTransport
    uses_processes = True


def test_another_transport_fits_without_a_change_of_the_dispatch():
    answers = []
    for make in (Toy, InProcess):
        engine = make(make_task(), chunk_size=4, threads=3)
        returns = engine.evaluate(POPULATION, make_context()).returns
        sums = engine.weighted_noise_sums(POPULATION, returns.T, [1] * len(returns.T))
        answers.append((returns.tobytes(), sums.tobytes()))
        engine.close()
    assert answers[0] == answers[1]


def test_jobs_of_any_function_are_collected_while_others_run(dispatch):
    long = dispatch.submit(sleep, 0.2, home=("job", 0))
    short = {dispatch.submit(count_up, number, home=("job", 1)): number for number in range(5)}
    answers = dict(dispatch.collect(short) for _ in short)
    assert {ticket: answer[0] for ticket, answer in answers.items()} == short
    assert dispatch.collect([long]) == (long, 0.2)


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
    with pytest.raises(ForeignExitError):
        dispatch.collect([ticket])


def make_homes(number):
    return [("job", each) for each in range(number)]


def do_rounds(transport, homes, rounds):
    """The numbers of the workers that did each job, one row for each round."""
    dispatch = Dispatch(transport)
    done = []
    for _ in range(rounds):
        transport.calls.clear()
        tickets = [dispatch.submit(count_up, number, home=home) for number, home in enumerate(homes)]
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
    assert do_rounds(make_even_transport(2), make_homes(6), 3) == [[0, 1, 0, 1, 0, 1]] * 3
    assert do_rounds(make_even_transport(3), make_homes(6), 3) == [[0, 1, 2, 0, 1, 2]] * 3


def test_a_worker_that_joins_gets_its_share_of_each_kind():
    transport = make_even_transport(2)
    dispatch = Dispatch(transport)

    def play_generation():
        transport.calls.clear()
        tickets = [dispatch.submit(count_up, number, home=("chunk", number)) for number in range(12)]
        tickets += [dispatch.submit(count_up, -1, home=("noise", number)) for number in range(60)]
        for _ in tickets:
            dispatch.collect(tickets)
        return [worker for worker, _, (number,) in sorted(transport.calls, key=lambda call: call[2]) if number >= 0]

    assert play_generation() == [0, 1] * 6
    transport.num_workers = 3
    play_generation()
    assert play_generation().count(2) >= 3


def test_an_idle_worker_takes_the_last_job_of_another():
    assert do_rounds(make_even_transport(2), 6 * make_homes(1), 2) == [[0, 0, 0, 1, 1, 1]] * 2


def test_jobs_without_a_home_go_to_any_worker_in_their_order():
    transport = make_even_transport(3)
    assert do_rounds(transport, [None] * 9, 2) == [[0, 1, 2] * 3] * 2
    assert [arguments for _, _, arguments in transport.calls] == [(number,) for number in range(9)]


def test_idle_workers_get_jobs_before_anybody_collects():
    transport = make_even_transport(2)
    dispatch = Dispatch(transport)
    tickets = [dispatch.submit(count_up, number) for number in range(4)]
    assert len(transport.alive) == 2 and not transport.calls  # they start
    assert len(list(dispatch.collect_each(tickets))) == 4
    for home in (None, ("job", 1)):
        transport.calls.clear()
        dispatch.submit(count_up, 4, home=home)
        assert len(transport.calls) == 1


@pytest.mark.parametrize("dispatch", [ThreadTransport, ProcessTransport], indirect=True)
def test_what_is_done_first_is_collected_first_or_nothing_after_the_timeout(dispatch):
    started, until = set(), time.monotonic() + 60
    while len(started) < 2 and time.monotonic() < until:
        started |= {answer for _, answer in dispatch.collect_each([dispatch.submit(name_worker) for _ in range(2)])}
    late, early = dispatch.submit(sleep, 1.2), dispatch.submit(sleep, 0.0)
    assert dispatch.collect([late], timeout=0) is None
    assert dispatch.collect([late], timeout=0.1) is None
    assert dispatch.collect([late, early], timeout=300)[0] == early
    assert dispatch.collect([late], timeout=300) == (late, 1.2)


def test_without_any_machine_it_waits_for_one_and_says_so(capsys):
    transport = make_even_transport(0)
    dispatch, wait, waits = Dispatch(transport), transport.wait, iter(range(100))

    def come_back(workers, timeout):
        transport.num_workers = int(next(waits) >= 3)
        return wait(workers, timeout)

    transport.wait = come_back
    ticket = dispatch.submit(count_up, 7)
    assert dispatch.collect([ticket])[1] == (7, 1)
    stranded = "no worker has started; waiting (on a cluster, for a free CPU)"
    assert capsys.readouterr().err == f"{stranded}\nthe work goes on\n"


def test_a_time_limit_does_not_include_the_wait_for_a_thread():
    dispatch, limit = Dispatch(ThreadTransport(Counter, 1)), TimeLimit(2.0, "too late", (0.0,))
    tickets = [dispatch.submit(sleep, 0.4, limit=limit, give_up=str) for _ in range(6)]
    assert [answer for _, answer in dispatch.collect_each(tickets)] == [0.4] * 6
    dispatch.close()


def test_jobs_that_were_done_in_time_may_be_collected_late():
    dispatch, limit = Dispatch(ThreadTransport(Counter, 2)), TimeLimit(1.6, "too late", (0.0,))
    warm = [dispatch.submit(sleep, 0.0, limit=limit) for _ in range(2)]
    assert len(list(dispatch.collect_each(warm))) == 2
    tickets = [dispatch.submit(sleep, 0.1, limit=limit, give_up=str) for _ in range(2)]
    time.sleep(1.7)
    assert [answer for _, answer in dispatch.collect_each(tickets)] == [0.1] * 2
    dispatch.close()


def test_a_signal_while_a_worker_starts_leaves_it_to_whoever_ends_all(monkeypatch):
    class Interrupted(ProcessWorker):
        def __init__(self, make_host):
            super().__init__(make_host)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(workers, "ProcessWorker", Interrupted)
    transport = ProcessTransport(Counter, 1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            transport.start_worker()
    finally:
        signal.signal(signal.SIGINT, before)
    (worker,) = transport.workers
    transport.close()
    assert worker.process.exitcode is not None


@pytest.mark.parametrize("engine_class", [Toy, InProcess, Workers])
def test_a_trainer_submits_its_own_jobs_to_the_engine(engine_class):
    engine = engine_class(make_task(), chunk_size=4, threads=2)
    whole, jobs = engine.evaluate(POPULATION, make_context()), {}
    for ids in (range(3, 6), range(2)):
        jobs[engine.submit(play, POPULATION, ids, make_context())] = ids
    for _ in range(2):
        ticket, returns = engine.collect(jobs)
        assert np.array_equal(returns, whole.returns[list(jobs.pop(ticket))])
    engine.close()


def play(evaluator, population, ids, context):
    return evaluator.evaluate(population, ids, context).returns


def test_a_worker_that_hangs_keeps_only_the_job_that_it_has():
    transport = ToyTransport(Counter, 2)
    transport.fate = lambda function, arguments: HANGS if arguments == (0,) else 0
    dispatch = Dispatch(transport)
    tickets = [dispatch.submit(count_up, number, home=("job", 0)) for number in range(5)]
    assert sorted(dispatch.collect(tickets[1:])[1][0] for _ in range(4)) == [1, 2, 3, 4]


def test_the_number_of_workers_may_change():
    transport = make_even_transport(1)
    dispatch = Dispatch(transport)
    for num_workers, made in ((1, 1), (3, 3), (2, 3)):
        transport.num_workers = num_workers
        tickets = [dispatch.submit(count_up, number, home=("job", number)) for number in range(4)]
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
