"""Engines on the test cluster, and work for them."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hebbes.execution.in_process import InProcess
from hebbes.execution.ray_engine import RayEngine
from hebbes.policies.linear import Linear
from tests.execution.scripted_tasks import make_task
from tests.execution.test_engines import collect_answers
from tests.waiting import wait_until

NUM_PARAMS = 4


def make_ray_engine(nodes, task, **options):
    settings = {"chunk_size": 4, "threads": -1, "ray_address": nodes.address, "allow_mixed_nodes": False}
    return RayEngine(task, **{**settings, **options})


def find_bits(**script):
    """The answers of threads."""
    return collect_answers(InProcess(make_task(**script), chunk_size=4, threads=1), NUM_PARAMS)


@contextmanager
def working(nodes):
    """An engine that works in another thread, because nodes start in the main one; the future of its answers; a file.

    Its episodes begin when the file exists, so that there is time to disturb them.
    """
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        gate = Path(folder, "gate")
        engine = make_ray_engine(nodes, make_task(wait_for=str(gate)))
        try:
            yield engine, pool.submit(collect_answers, engine, NUM_PARAMS), gate
        finally:
            gate.touch()


def wait_for_workers(engine, number):
    """Until this many workers have chunks."""
    seats = engine._dispatch._seats
    assert wait_until(lambda: sum(bool(seat.calls) for seat in list(seats.values())) >= number)


def add_up(evaluator, array):
    return float(array.sum())


class Unsendable(Linear):
    """A policy that cannot be pickled."""

    def __reduce__(self):
        raise TypeError("cannot pickle a lock")


class OtherWork:
    """Work of somebody else."""


def return_seven(evaluator):
    return 7
