"""How members are cut into chunks: all of them once, and evenly among threads where no result depends on it."""

from dataclasses import dataclass, replace
from functools import partial

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.execution.chunk_rule import ChunkRule, choose_chunk_rule, count_env_threads
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.linear import Linear


@dataclass(frozen=True)
class UsersLinear(Linear):
    """A policy of the user's."""


def make_task(backend="envpool", observation_shape=(17,), policy_class=Linear, num_outputs=6, **changes):
    agent = Agent(policy_class(observation_shape, num_outputs), "tanh")
    return Task(agent, EnvironmentSpec("HalfCheetah-v5", backend, **changes), seed=0)


@given(*(st.integers(1, most) for most in (2000, 200, 40)), st.booleans(), st.integers(1, 400), st.integers(0, 99))
def test_chunks_cover_the_members_once_in_order_and_evenly(num_members, size, min_size, is_even, threads, first):
    assume(size > 1 or not is_even)
    rule, members = ChunkRule(size, is_even, min(min_size, size)), range(first, first + num_members)
    chunks = rule.cut_into_chunks(members, threads)
    assert [member for chunk in chunks for member in chunk] == list(members)
    assert min(map(len, chunks)) >= max(1, max(map(len, chunks)) - 1)
    assert max(map(len, chunks)) == rule.compute_largest_chunk(num_members, threads) <= 1.5 * size + 1
    if is_even:
        assert len(chunks) <= threads or len(chunks) % threads == 0


@pytest.mark.parametrize(
    ("num_members", "threads", "sizes"),
    [
        (1, 2, [1]),
        (31, 2, [31]),
        (33, 2, [16, 17]),
        (200, 1, [100] * 2),
        (200, 2, [100] * 2),
        (201, 3, [67] * 3),
        (400, 2, [100] * 4),
        (240, 6, [40] * 6),
        (256, 8, [64] * 4),
        (240, 16, [40] * 6),
        (1024, 16, [64] * 16),
        (9600, 16, [120] * 80),
    ],
)
def test_by_default_threads_share_the_members_evenly(num_members, threads, sizes):
    rule = choose_chunk_rule(make_task(), None, uses_processes=False)
    assert [len(chunk) for chunk in rule.cut_into_chunks(range(num_members), threads)] == sizes


@pytest.mark.parametrize(("threads", "num_chunks", "count"), [(1, 9, 1), (2, 2, 1), (4, 3, 1), (8, 4, 2), (16, 6, 3)])
def test_simulators_of_few_chunks_have_several_threads(threads, num_chunks, count):
    assert count_env_threads(threads, num_chunks) == count


@pytest.mark.parametrize(
    ("task", "uses_processes", "largest"),
    [
        (make_task(), False, 96),
        (make_task(), True, 32),
        (make_task(num_outputs=6000), False, 32),
        (make_task(policy_class=partial(Hebbian, hidden_sizes=(512, 512), sharing="layer")), False, 32),
        (make_task(observation_shape=(84, 84, 3)), False, 16),
        (make_task(observation_shape=(84, 84, 3)), True, 16),
        (make_task("gymnasium"), False, 4),
        (make_task("gymnasium"), True, 4),
        (make_task(policy_class=UsersLinear), False, 32),
        (replace(make_task(), modules=("my_strategy",)), False, 32),
        (make_task(wrappers=(PartSpec("my_parts:Wrapper", {}),)), False, 32),
        (make_task(training_wrappers=(PartSpec("my_parts:Wrapper", {}),)), False, 32),
        (make_task(wrappers=(PartSpec("frame_stack", {}),)), False, 96),
    ],
)
def test_the_number_of_threads_decides_only_where_no_result_depends_on_who_acts_together(task, uses_processes, largest):
    """A crash fails the members of a chunk, and products of a user's policy may have other last bits in another one."""
    rule = choose_chunk_rule(task, None, uses_processes=uses_processes)
    assert rule.compute_largest_chunk(192, threads=2) == largest
    assert (rule.count_chunks(192, 2) == rule.count_chunks(192, 5)) == (not rule.is_even)
    assert choose_chunk_rule(task, 7, uses_processes=uses_processes) == ChunkRule(7)
