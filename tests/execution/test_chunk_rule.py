"""How members are cut into chunks: all of them once, and evenly among threads where no result depends on it."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.wrapper_spec import WrapperSpec
from hebbes.execution.chunk_rule import ChunkRule, choose_chunk_rule
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.policies.linear import Linear


@dataclass(frozen=True)
class UsersLinear(Linear):
    """A policy of the user's."""


def make_task(backend="envpool", observation_shape=(17,), policy_class=Linear, num_outputs=6, **changes):
    agent = Agent(policy_class(observation_shape, num_outputs), "tanh")
    return Task(agent, EnvironmentSpec("HalfCheetah-v5", backend, **changes), seed=0)


@given(*(st.integers(1, most) for most in (500, 200, 8, 40, 20)), st.integers(0, 99))
def test_chunks_cover_the_members_once_in_order_and_evenly(num_members, size, at_once, least, threads, first):
    assume(size > 1 or at_once == 1)
    rule, members = ChunkRule(size, at_once, least), range(first, first + num_members)
    chunks = rule.cut(members, threads)
    assert [member for chunk in chunks for member in chunk] == list(members)
    assert min(map(len, chunks)) >= max(1, max(map(len, chunks)) - 1)
    assert max(map(len, chunks)) == rule.compute_largest(num_members, threads) <= 1.5 * size + 1
    if threads <= at_once and num_members >= least * threads:
        assert len(chunks) % threads == 0


@pytest.mark.parametrize(
    ("num_members", "threads", "count"),
    [
        (1, 2, 1),
        (31, 2, 1),
        (33, 2, 2),
        (200, 1, 2),
        (200, 2, 2),
        (200, 3, 3),
        (400, 2, 4),
        (256, 6, 6),
        (256, 8, 4),
        (256, 16, 6),
    ],
)
def test_by_default_threads_get_as_many_chunks_each(num_members, threads, count):
    rule = choose_chunk_rule(make_task(), None, uses_processes=False)
    assert rule.count(num_members, threads) == count


@pytest.mark.parametrize(
    ("task", "uses_processes", "largest"),
    [
        (make_task(), False, 96),
        (make_task(), True, 32),
        (make_task(num_outputs=6000), False, 32),
        (make_task(observation_shape=(84, 84, 3)), False, 16),
        (make_task(observation_shape=(84, 84, 3)), True, 16),
        (make_task("gymnasium"), False, 4),
        (make_task("gymnasium"), True, 4),
        (make_task(policy_class=UsersLinear), False, 32),
        (replace(make_task(), modules=("my_strategy",)), False, 32),
        (make_task(wrappers=(WrapperSpec("my_parts:Wrapper", {}),)), False, 32),
        (make_task(training_wrappers=(WrapperSpec("my_parts:Wrapper", {}),)), False, 32),
        (make_task(wrappers=(WrapperSpec("frame_stack", {}),)), False, 96),
    ],
)
def test_the_number_of_threads_decides_only_where_no_result_depends_on_who_acts_together(task, uses_processes, largest):
    """A crash fails the members of a chunk, and products of a user's policy may have other last bits in another one."""
    rule = choose_chunk_rule(task, None, uses_processes=uses_processes)
    assert rule.compute_largest(192, threads=2) == largest
    assert (rule.cut(range(192), threads=2) == rule.cut(range(192), threads=5)) == (rule.at_once == 1)
    assert choose_chunk_rule(task, 7, uses_processes=uses_processes) == ChunkRule(7)
