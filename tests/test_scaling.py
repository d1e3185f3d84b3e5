"""The simulation of benchmarks/scaling.py, in cases that can be computed by hand, and the benchmarks themselves."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scaling_costs import fit
from benchmarks.scaling_model import FREE, Driver, Network, Workload, do_jobs, predict, simulate, simulate_one_core
from tests.python_process import run_python

NOWHERE = Network(0.0, np.inf, 64)
WORK = Workload("work", 100, [3], 1.0, 0.5, 0.25, 0.125, 2)


@pytest.mark.parametrize(("num_workers", "seconds"), [(1, 10), (2, 6), (3, 5), (9, 4)])
def test_idle_workers_take_the_next_job(num_workers, seconds):
    # two workers: 1 + 2 + 3 on one and 1 + ... as they become idle: (2, then 3) = 5 and (1, then 4) = 5
    assert do_jobs([1, 2, 3, 4], num_workers) == seconds


def test_the_driver_does_one_thing_after_another():
    # It hands out a until 1 and b until 2, so they end at 4 and 5. It takes a until 6, hands out c until 7, takes b
    # until 9, and c, which ended at 10, until 12.
    assert do_jobs([3, 3, 3], 2, send=1, take=2) == 12


def test_a_look_finds_all_answers_that_have_come():
    # a and b end at 4 and 5. The look from 4 to 6 finds both, and c, which ends at 9, is found from 9 to 11.
    assert do_jobs([4, 5, 3], 2, look=2) == 11


def test_a_job_takes_the_way_there_and_back():
    # Both jobs are with the driver at 1 + 5 + 1 and 9 + 1 + ...: the second begins when the first is back.
    assert do_jobs([5, 2], 1, latency=1) == 11


def simulate_work(driver=FREE, network=NOWHERE, num_workers=1, num_members=4, chunk_size=2, work=WORK):
    setting = {"num_workers": num_workers, "num_members": num_members, "chunk_size": chunk_size}
    return simulate(work, driver, network, **setting, rng=np.random.default_rng(0))


def test_a_chunk_costs_its_members_and_its_longest_episode():
    # 2 * 0.25 for the members, 3 * 0.5 for the batch, 2 * 3 for their env steps: 8 for each of two chunks
    found = simulate_work()
    assert (found.evaluation, found.sums, found.work, found.seconds) == (16, 0.5, 16.5, 16.5)
    assert simulate_work(num_workers=2).evaluation == 8
    assert simulate_one_core(WORK, FREE, 4, np.random.default_rng(0)) == 16.5


def test_chunks_of_unequal_episodes_last_as_long_as_the_longest():
    chunks = replace(WORK, lengths=[2, 10], env_step=0.0, member=0.0).draw_chunks([50], np.random.default_rng(0))
    assert chunks == [5]


def test_the_driver_updates_and_the_network_carries():
    driver = replace(FREE, member=1.0, weight=0.01, generation=2.0)
    assert simulate_work(driver).update == 4 * 1 + 100 * 0.01 + 2
    # 400 bytes to 2 nodes, which are 3 hosts with the driver's own: twice 400 / 100 s
    assert simulate_work(network=Network(0.0, 100.0, 1), num_workers=2).broadcast == 8
    # each of two parts of 32 members takes 4 s of noise, and its 1,600 bytes 16 s one after another
    assert simulate_work(network=Network(0.0, 100.0, 1), num_workers=2, num_members=64).sums == 36


def test_what_hands_out_and_takes_is_half_of_a_job_each():
    driver = replace(FREE, job=4.0, look=1.0, look_of_worker=0.5)
    # The first chunk is handed out until 2 and the second until 4, so they are done at 10 and 12. A look takes 2 s and
    # finds both at 12. The answers are taken until 16.
    assert simulate_work(driver, num_workers=2).evaluation == 16


def test_the_bottleneck_is_what_costs_most():
    def find(driver=FREE, network=NOWHERE, num_members=1000):
        return predict(WORK, driver, network, num_workers=4, num_members=num_members).bottleneck

    assert find(replace(FREE, generation=500.0)) == "driver"
    assert find(network=Network(0.0, 1.0, 64)) == "network"
    assert find(num_members=5) == "last chunks"


def test_the_best_chunk_size_and_the_efficiency_of_it():
    many = replace(WORK, default_chunk_size=4, batch_step=0.0, noise=0.0)
    found = predict(many, FREE, NOWHERE, num_workers=8, num_members=8)
    assert (found.chunk_size, found.efficiency, found.speed_up) == (1, 1.0, 8.0)
    costly = predict(many, replace(FREE, job=100.0), NOWHERE, num_workers=8, num_members=8)
    assert costly.chunk_size == 4


def test_a_thousand_cores_are_used_if_episodes_take_a_second_and_the_driver_less_than_a_millisecond():
    driver = Driver(3e-4, look=1e-4, look_of_worker=6e-7, member=2e-5, vector_byte=5e-10, weight=3e-8, generation=1e-3)
    work = Workload("work", 100_000, [1000], 1e-3, 0.0, 1e-3, 1e-3, 1)
    assert predict(work, driver, Network(1e-3, 1.25e9, 64), num_workers=1000, num_members=10_000).efficiency > 0.9


def test_costs_are_fitted_and_never_negative():
    rows = [(1, 1, 0), (1, 2, 5), (2, 1, 1), (3, 5, 2)]
    assert fit(rows, [2 * a + 3 * b for a, b, _ in rows]) == pytest.approx([2, 3, 0])


@pytest.mark.slow
@pytest.mark.ray
def test_the_benchmark_of_the_cluster_counts_bytes_that_do_not_grow_with_the_weights(tmp_path):
    results = tmp_path / "results.json"
    command = ["-m", "benchmarks.cluster", "--members", "100", "--results", results, "--json"]
    done = run_python(*command)
    small, large = json.loads(done.stdout)
    assert small["weights"] * 50 < large["weights"]
    assert small["evaluation_bytes_per_member"] == large["evaluation_bytes_per_member"] < 1000
    assert small["broadcast_bytes"] < large["broadcast_bytes"] < 5 * large["weights"]
    before = json.loads(results.read_text())
    again = run_python(*command)
    assert json.loads(again.stdout) == [small, large] and json.loads(results.read_text()) == before
