"""Sums of parts have the same bits, whoever computes them and in whatever order they arrive."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hebbes.execution.chunk_rule import count_chunks, cut_into_chunks
from hebbes.execution.chunks import ChunkEvaluator
from hebbes.execution.in_process import InProcess
from hebbes.execution.noise_sums import (
    GROUPS_PER_THREAD,
    MAX_GROUPS,
    PairwiseSum,
    count_kept_arrays,
    group_parts,
    sum_noise_of_parts,
)
from hebbes.strategies.core.populations import GaussianPopulation
from tests.execution.scripted_tasks import make_task


def make_parts(count):
    """Arrays whose sum has other bits in almost any other order."""
    return np.random.default_rng(count).normal(size=(count, 2, 50)) * 10.0 ** np.arange(50)


def add_by_definition(parts):
    """Neighbors are added, then neighbors among the sums; a last one without a neighbor goes up as it is."""
    while len(parts) > 1:
        last = [parts[-1]] if len(parts) % 2 else []
        parts = [*(left + right for left, right in zip(parts[::2], parts[1::2], strict=False)), *last]
    return parts[0]


@given(st.data(), st.integers(1, 40))
def test_the_sum_is_the_tree_over_neighbors_in_any_order_of_arrival(data, count):
    parts, sums = make_parts(count), PairwiseSum(count)
    for number in data.draw(st.permutations(range(count))):
        sums.add(number, parts[number].copy())
    assert np.array_equal(sums.total, add_by_definition(list(parts)))


@pytest.mark.parametrize(("count", "kept"), [(1, 1), (312, 9), (1024, 11)])
def test_few_parts_are_kept_however_many_there_are(count, kept):
    sums = PairwiseSum(count)
    for number in range(count):
        sums.add(number, np.zeros((1, 3)))
        assert len(sums._waiting) <= kept


@pytest.mark.parametrize("num_parts", [1, 40, 312, 2000])
def test_the_arrays_in_memory_are_no_more_than_estimated(num_parts):
    population = GaussianPopulation(np.zeros(20_000, np.float32), 0.5, 3, 4, num_parts - 1, sampler="normal")
    utilities, groups = np.ones((1, num_parts)), group_parts([range(k, k + 1) for k in range(num_parts)], 1)
    tracemalloc.start()
    sums = PairwiseSum(len(groups))
    for number, group in enumerate(groups):
        sums.add(number, sum_noise_of_parts(population, group, utilities, [1]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    product_and_noise = 1.5
    assert peak / (8 * 20_000) <= count_kept_arrays(num_parts, 1) + product_and_noise + 1


@given(st.integers(1, 300), st.integers(1, 12), st.integers(1, 6))
def test_groups_of_parts_for_any_number_of_threads_leave_the_same_bits(num_members, part_size, threads):
    population = GaussianPopulation(np.zeros(5, np.float32), 0.5, 3, 4, num_members, sampler="normal")
    utilities = np.random.default_rng(0).normal(size=(2, num_members + 1))
    parts = cut_into_chunks(range(num_members + 1), count_chunks(num_members + 1, part_size))
    groups = group_parts(parts, threads)
    assert [ids for group in groups for ids in group] == parts
    assert len(groups) <= GROUPS_PER_THREAD * threads and (len(groups) == len(parts) or len(groups) > 2 * threads)
    sums = PairwiseSum(len(groups))
    for number, group in enumerate(groups):
        sums.add(number, sum_noise_of_parts(population, group, utilities, (1, 2)))
    assert np.array_equal(sums.total, sum_noise_of_parts(population, parts, utilities, (1, 2)))


def test_every_thread_gets_several_groups(monkeypatch):
    groups = []
    evaluate_group = ChunkEvaluator.weighted_noise_sums
    monkeypatch.setattr(
        ChunkEvaluator,
        "weighted_noise_sums",
        lambda host, *arguments: groups.append(arguments[1]) or evaluate_group(host, *arguments),
    )
    engine = InProcess(make_task(), chunk_size=1000, threads=16)
    population = GaussianPopulation(np.zeros(4, np.float32), 0.5, 3, 4, 1999)
    engine.weighted_noise_sums(population, np.ones((1, 2000)), [1])
    engine.close()
    assert len(groups) == 62


@given(st.integers(1, 100_000), st.integers(1, 20_000))
def test_no_population_and_no_number_of_threads_sends_more_arrays(num_parts, threads):
    assert min(num_parts, 2) <= len(group_parts([range(1)] * num_parts, threads)) <= MAX_GROUPS
