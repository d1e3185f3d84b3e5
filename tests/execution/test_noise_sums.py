"""Sums of chunks have the same bits, whoever computes them and in whatever order they arrive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hebbes.execution.chunks import cut_into_chunks
from hebbes.execution.noise_sums import GROUPS_PER_WORKER, PairwiseSum, group_chunks, sum_noise_of_chunks
from hebbes.strategies.core.populations import GaussianPopulation


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


@given(st.integers(1, 300), st.integers(1, 12), st.integers(1, 6))
def test_groups_of_chunks_for_any_number_of_workers_leave_the_same_bits(num_members, chunk_size, workers):
    population = GaussianPopulation(np.zeros(5, np.float32), 0.5, 3, 4, num_members, sampler="normal")
    utilities = np.random.default_rng(0).normal(size=(2, num_members + 1))
    chunks = cut_into_chunks(num_members + 1, chunk_size)
    groups = group_chunks(chunks, workers)
    assert [ids for group in groups for ids in group] == chunks
    assert len(groups) <= GROUPS_PER_WORKER * workers and (len(groups) == len(chunks) or len(groups) > 2 * workers)
    sums = PairwiseSum(len(groups))
    for number, group in enumerate(groups):
        sums.add(number, sum_noise_of_chunks(population, group, utilities, (1, 2)))
    assert np.array_equal(sums.total, sum_noise_of_chunks(population, chunks, utilities, (1, 2)))
