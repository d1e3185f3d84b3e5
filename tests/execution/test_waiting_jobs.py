"""Jobs that wait, against a list that is searched from its beginning each time. No job that is done is kept."""

import gc
import operator
from itertools import count
from math import ceil
from weakref import ref

from hypothesis import given, settings
from hypothesis import strategies as st

from hebbes.execution.dispatch import Dispatch
from hebbes.execution.in_process import ThreadTransport
from hebbes.execution.jobs import Job, Seat, end_dispatch
from hebbes.execution.waiting_jobs import WaitingJobs
from tests.execution.toy_transport import Counter
from tests.waiting import wait_until

SEATS = [Seat(number, None, 0.0) for number in range(3)]


class PlainList:
    """The same in a few lines, slowly."""

    def __init__(self):
        self.jobs, self.owners = [], {}

    def add(self, job, first=False):
        self.jobs.insert(0 if first else len(self.jobs), job)
        return self.owners.get(job.home)

    def take(self, job, seat):
        self.jobs.remove(job)
        if job.home is not None:
            self.owners.setdefault(job.home, seat)

    def find_first(self, seat):
        return next((job for job in self.jobs if self.owners.get(job.home) in (None, seat)), None)

    def find_last(self):
        return self.jobs[-1] if self.jobs else None

    def free(self, seat, kinds="ab", kept=0):
        own = [home for home, owner in self.owners.items() if owner is seat and home[0] in kinds]
        for home in own[kept:]:
            del self.owners[home]

    def share_out(self, num_workers):
        for kind in "ab":
            share = ceil(sum(home[0] == kind for home in self.owners) / num_workers)
            for seat in SEATS:
                self.free(seat, kind, share)


HOMES = [None, *(("a", number) for number in range(4)), ("b", 0), ("b", 1)]
ADD = st.tuples(st.just("add"), st.sampled_from(HOMES), st.booleans())
TAKE = st.tuples(st.sampled_from(["first", "last", "free"]), st.sampled_from(SEATS), st.none())
SHARE = st.tuples(st.just("share"), st.integers(1, 4), st.none())


@settings(deadline=None)
@given(st.lists(st.one_of(ADD, ADD, TAKE, TAKE, SHARE), max_size=60))
def test_jobs_come_as_from_a_plain_list(actions):
    fast, plain, tickets = WaitingJobs(), PlainList(), count()
    for kind, argument, first in actions:
        if kind == "add":
            job = Job(next(tickets), print, (), argument, None, end_dispatch)
            assert fast.add(job, first=first) is plain.add(job, first=first)
        elif kind == "share":
            fast.share_out(argument), plain.share_out(argument)
        elif kind == "free":
            fast.free(argument), plain.free(argument)
        else:
            found = [each.find_last() if kind == "last" else each.find_first(argument) for each in (fast, plain)]
            assert found[0] is found[1]
            if found[0] is not None:
                fast.take(found[0], argument), plain.take(found[0], argument)
        assert len(fast) == len(plain.jobs)


def test_finding_a_job_does_not_look_at_all_that_wait():
    """Ten thousand jobs of three workers are handed out with a few looks at the order for each."""
    waiting, looks = WaitingJobs(), count()
    jobs = [Job(number, print, (), ("a", number), None, end_dispatch) for number in range(10_000)]
    waiting._find_owner = lambda job: (next(looks), WaitingJobs._find_owner(waiting, job))[1]
    for _ in range(2):  # in the second round all homes are owned
        for job in jobs:
            waiting.add(job)
        while waiting:
            for seat in SEATS:
                job = waiting.find_first(seat)
                if job is not None:
                    waiting.take(job, seat)
    assert next(looks) < 10 * 2 * len(jobs)


def test_jobs_that_are_taken_are_forgotten():
    waiting = WaitingJobs()
    jobs = [Job(number, print, (), ("a", 0), None, end_dispatch) for number in range(3)]
    forgotten = [ref(job) for job in jobs]
    for job in jobs:
        waiting.add(job)
    del job, jobs
    while (job := waiting.find_last()) is not None:
        waiting.take(job, SEATS[0])
    gc.collect()
    assert not any(each() for each in forgotten)


def test_a_thread_that_waits_keeps_nothing_of_its_last_job():
    dispatch, sent = Dispatch(ThreadTransport(Counter, 1)), Counter()
    forgotten = ref(sent)
    assert dispatch.collect([dispatch.submit(operator.is_, sent)])[1] is False
    del sent
    assert wait_until(lambda: forgotten() is None, seconds=10)
    dispatch.close()
