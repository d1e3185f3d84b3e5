"""A run on a Ray cluster has the bits of one in threads, whatever happens to its nodes and workers."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.execution import dispatch, jobs, ray_cluster
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.execution.in_process import InProcess
from hebbes.execution.ray_engine import find_modules_of_task
from hebbes.execution.ray_worker import describe_node
from hebbes.policies.mlp import MLP
from tests.cluster.ray_engines import (
    OtherWork,
    add_up,
    find_bits,
    make_ray_engine,
    return_seven,
    wait_for_workers,
    working,
)
from tests.execution.scripted_tasks import POPULATION, make_context, make_task
from tests.execution.test_engine_faults import find_failing_chunk
from tests.execution.test_engines import collect_answers
from tests.waiting import wait_until

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def bits():
    return find_bits()


def find_refusal(nodes):
    """Why no engine can be made; empty if one can, which waits for nodes that are slow to answer."""
    try:
        make_ray_engine(nodes, make_task()).close()
    except ValueError as error:
        return str(error)
    return ""


def make_half_cheetah_task():
    return Task(Agent(MLP((17,), 6, hidden_sizes=(8,)), "tanh"), EnvironmentSpec("HalfCheetah-v5", "envpool"), 11)


@pytest.mark.parametrize("make", [make_half_cheetah_task, make_task], ids=["HalfCheetah", "Gymnasium"])
def test_the_same_bits_as_in_threads(joined, make):
    joined.keep((1, 1))
    num_params = make().agent.policy.layout.num_params
    alone = collect_answers(InProcess(make(), chunk_size=4, threads=1), num_params, max_episode_steps=50)
    assert collect_answers(make_ray_engine(joined, make()), num_params, max_episode_steps=50) == alone


def test_a_node_that_is_killed_and_one_that_joins_change_nothing(joined, bits):
    _, second = joined.keep((1, 1))
    with working(joined) as (engine, answers, gate):
        wait_for_workers(engine, 2)
        joined.kill(second)
        assert wait_until(lambda: engine.metrics["nodes"] == 1)
        joined.add(1)
        assert wait_until(lambda: engine.metrics["nodes"] == 2)
        gate.touch()
        assert answers.result(300) == bits


def test_when_all_nodes_are_gone_it_waits_for_one(joined, bits, capfd):
    (only,) = joined.keep((1,))
    with working(joined) as (engine, answers, gate):
        wait_for_workers(engine, 1)
        capfd.readouterr()  # that it waited for this node, if that was slow to answer
        joined.kill(only)
        assert wait_until(lambda: engine.metrics["nodes"] == 0)
        joined.add(1)
        gate.touch()
        assert answers.result(300) == bits
    said = capfd.readouterr().err
    assert said.count("no worker has started; waiting (on a cluster, for a free CPU)\n") == 1
    assert said.count("the work goes on\n") == 1


def test_a_node_that_is_stopped_is_lost_and_changes_nothing(joined, bits):
    first, _ = joined.keep((1, 1))
    with working(joined) as (engine, answers, gate):
        wait_for_workers(engine, 2)
        stopped = [joined.find_raylet(first).pid, *joined.find_workers(first)]
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        try:
            gate.touch()
            assert answers.result(300) == bits
        finally:
            for process in stopped:
                os.kill(process, signal.SIGKILL)
            joined.kill(first)
        assert engine.metrics["chunks_sent_again"] >= 1


def test_workers_that_are_stopped_are_replaced_even_if_they_are_all(joined, bits, monkeypatch, capfd):
    monkeypatch.setattr(dispatch, "LOOK_SECONDS", 3.0)
    (only,) = joined.keep((2,))
    with working(joined) as (engine, answers, gate):
        wait_for_workers(engine, 2)
        for process in joined.find_workers(only):
            os.kill(process, signal.SIGSTOP)
        gate.touch()
        assert answers.result(300) == bits
    assert capfd.readouterr().err.count("a worker was replaced: worker was stopped from outside on node") == 2


def test_while_other_work_has_all_cpus_it_waits_and_says_so(joined, monkeypatch, capfd):
    monkeypatch.setattr(ray_cluster, "FIRST_SECONDS", 2.0)
    joined.keep((1,))
    engine = make_ray_engine(joined, make_task())
    cluster = engine._transport._cluster
    assert wait_until(lambda: len(cluster._read_nodes()) == 1)  # those of other tests, which cannot answer, are gone
    assert wait_until(lambda: engine._transport.num_workers == 1)
    other = cluster.start_on(*cluster.nodes.values(), OtherWork)
    assert wait_until(lambda: engine._transport.num_workers == 0)
    assert wait_until(lambda: "none of the cluster's 1 CPUs is free" in find_refusal(joined))  # once the node answers
    capfd.readouterr()  # that nodes of other tests are gone
    ticket = engine.submit(return_seven)
    assert engine._dispatch.collect([ticket], timeout=2) is None
    assert capfd.readouterr().err == "no worker has started; waiting (on a cluster, for a free CPU)\n"
    cluster.ray.kill(other)
    assert engine.collect([ticket]) == (ticket, 7)
    assert capfd.readouterr().err == "the work goes on\n"
    engine.close()


def test_a_worker_that_is_killed_as_when_memory_is_short_changes_nothing(joined, bits):
    first, _ = joined.keep((1, 1))
    with working(joined) as (engine, answers, gate):
        wait_for_workers(engine, 2)
        os.kill(joined.find_workers(first)[0], signal.SIGKILL)
        gate.touch()
        assert answers.result(300) == bits
        assert engine.metrics["chunks_sent_again"] >= 1


def test_the_cluster_keeps_what_is_shared_as_long_as_the_value_lives(joined):
    joined.keep((1,))
    engine = make_ray_engine(joined, make_task())
    assert engine._transport._cluster._modules == find_modules_of_task(make_task()) != ()
    population = replace(POPULATION, generation=5)
    first, second = (engine._transport.share(population) for _ in range(2))
    assert first is second
    engine.evaluate(population, make_context())
    del population, first, second
    assert len(engine._transport._shared) == 1  # what makes the hosts of new workers
    engine.close()


@pytest.mark.parametrize(
    ("script", "reason"), [("crash_at", "Fatal Python error: Segmentation fault"), ("exit_at", "died or was killed")]
)
def test_only_the_members_of_a_chunk_that_ends_its_workers_fail(joined, monkeypatch, script, reason):
    monkeypatch.setitem(jobs.MAX_TRIES, "unknown", 2)  # which takes less time than five
    joined.keep((2,))
    engine = make_ray_engine(joined, make_task(**{script: 2}, only_above=1.4))
    rollouts = engine.evaluate(POPULATION, make_context())
    engine.close()
    assert np.isnan(rollouts.fitness).tolist() == find_failing_chunk().tolist()
    (found,) = rollouts.faults
    assert reason in found


def test_users_code_that_a_run_names_is_hashed(tmp_path, monkeypatch):
    wrapper = PartSpec("tests.hybrids.test_asynchronous_runs:Fragile")
    task = make_task()
    environment = replace(task.environment, gymnasium_wrappers=(wrapper, PartSpec("gymnasium.wrappers:TimeLimit")))
    assert find_modules_of_task(replace(task, environment=environment, modules=("my_strategy", "hebbes.policies"))) == (
        "my_strategy",
        "tests.hybrids.test_asynchronous_runs",
        "tests.scripted",
    )
    assert describe_node(("json.decoder",))["json.decoder"] == describe_node(("json",))["json"]
    monkeypatch.syspath_prepend(tmp_path)
    hashes = set()
    for text in ("size = 1\n", "size = 2\n"):
        (tmp_path / "module_of_a_user.py").write_text(text)
        hashes.add(describe_node(("module_of_a_user",))["module_of_a_user"])
    assert len(hashes) == 2


def test_what_is_larger_than_the_object_store_goes_through_files_and_a_line_says_so(joined, capfd):
    joined.keep((1,))
    engine = make_ray_engine(joined, make_task())
    large = np.ones(2 * 10**7)
    for _ in range(2):
        assert engine.collect([engine.submit(add_up, engine._transport.share(large))])[1] == 2e7
        large = large.copy()
    engine.close()
    (line,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith("what a generation shares"))
    assert line.startswith("what a generation shares, 160 MB, does not fit into the object store of node ")
    assert line.endswith(
        ", 100 MB: Ray writes files, which is slower; ray start --object-store-memory=BYTES makes it larger"
    )
