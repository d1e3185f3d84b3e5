"""A run on a Ray cluster has the bits of one in threads, whatever happens to its nodes and workers."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.execution import stragglers
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.execution.in_process import InProcess
from hebbes.policies.mlp import MLP
from tests.cluster.ray_engines import add_up, find_bits, make_ray_engine, wait_for_workers, wait_until, working
from tests.execution.scripted_tasks import POPULATION, make_context
from tests.execution.test_engine_faults import find_failing_chunk
from tests.execution.test_engines import build_scripted_task, collect_answers

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def bits():
    return find_bits()


def make_half_cheetah_task():
    return Task(Agent(MLP((17,), 6, hidden_sizes=(8,)), "tanh"), EnvironmentSpec("HalfCheetah-v5", "envpool"), 11)


@pytest.mark.parametrize("make_task", [make_half_cheetah_task, build_scripted_task], ids=["HalfCheetah", "Gymnasium"])
def test_the_same_bits_as_in_threads(nodes, make_task):
    nodes.keep((1, 1))
    num_params = make_task().agent.policy.layout.num_params
    alone = collect_answers(InProcess(make_task(), chunk_size=4, threads=1), num_params)
    assert collect_answers(make_ray_engine(nodes, make_task()), num_params) == alone


def test_a_node_that_is_killed_and_one_that_joins_change_nothing(nodes, bits):
    _, second = nodes.keep((1, 1))
    with working(nodes) as (engine, answers):
        wait_for_workers(engine, 2)
        nodes.kill(second)
        wait_until(lambda: engine.metrics["nodes"] == 1)
        nodes.add(1)
        wait_until(lambda: engine.metrics["nodes"] == 2)
        assert answers.result(100) == bits


def test_when_all_nodes_are_gone_it_waits_for_one(nodes, bits, capfd):
    (only,) = nodes.keep((1,))
    with working(nodes) as (engine, answers):
        wait_for_workers(engine, 1)
        nodes.kill(only)
        wait_until(lambda: engine.metrics["nodes"] == 0)
        nodes.add(1)
        assert answers.result(100) == bits
    said = capfd.readouterr().err
    assert said.count("no machine is left to do the work; waiting for one\n") == 1
    assert said.count("the work goes on\n") == 1


@pytest.mark.parametrize("what", ["worker", "node"])
def test_the_job_of_a_worker_or_node_that_is_stopped_is_sent_again(nodes, bits, monkeypatch, what):
    monkeypatch.setattr(stragglers, "PATIENCE_SECONDS", 3.0)
    monkeypatch.setattr(stragglers, "UNKNOWN_SECONDS", 6.0)
    first, _ = nodes.keep((1, 1))
    with working(nodes) as (engine, answers):
        wait_for_workers(engine, 2)
        stopped = nodes.find_workers(first) + [nodes.find_raylet(first).pid] * (what == "node")
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        try:
            assert answers.result(100) == bits
        finally:
            for process in stopped:
                os.kill(process, signal.SIGKILL)
        assert engine.metrics["chunks_sent_again"] >= 1


def test_a_worker_that_is_killed_as_when_memory_is_short_changes_nothing(nodes, bits):
    first, _ = nodes.keep((1, 1))
    with working(nodes) as (engine, answers):
        wait_for_workers(engine, 2)
        os.kill(nodes.find_workers(first)[0], signal.SIGKILL)
        assert answers.result(100) == bits
        assert engine.metrics["chunks_sent_again"] >= 1


def test_the_cluster_keeps_what_is_shared_as_long_as_the_value_lives(nodes):
    nodes.keep((1,))
    engine = make_ray_engine(nodes, build_scripted_task())
    population = replace(POPULATION, generation=5)
    first, second = (engine._transport.share(population) for _ in range(2))
    assert first is second
    engine.evaluate(population, make_context())
    del population, first, second
    assert len(engine._transport._shared) == 1  # what makes the hosts of new workers
    engine.close()


def test_only_the_members_of_a_chunk_that_crashes_fail(nodes):
    nodes.keep((2,))
    engine = make_ray_engine(nodes, build_scripted_task(crash_at=2, only_above=1.4))
    rollouts = engine.evaluate(POPULATION, make_context())
    engine.close()
    assert np.isnan(rollouts.fitness).tolist() == find_failing_chunk().tolist()
    (reason,) = rollouts.faults
    assert "Fatal Python error: Segmentation fault" in reason


def test_what_is_larger_than_the_object_store_goes_through_files_and_a_line_says_so(nodes, capfd):
    nodes.keep((1,))
    engine = make_ray_engine(nodes, build_scripted_task())
    large = np.ones(2 * 10**7)
    for _ in range(2):
        assert engine.collect([engine.submit(add_up, engine._transport.share(large))])[1] == 2e7
        large = large.copy()
    engine.close()
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("what a generation shares, 160 MB, does not fit into the object store of node ")
    assert line.endswith(
        ", 100 MB: Ray writes files, which is slower; ray start --object-store-memory=BYTES makes it larger"
    )
