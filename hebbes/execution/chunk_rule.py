"""ChunkRule: how many members are evaluated together, which decides the speed.

Results must not depend on the number of workers. So the size alone decides where a crash may fail a chunk, or where
bits may depend on who acts together. Elsewhere threads share the members evenly. Only one thread at a time runs Python,
and an env step takes about as much Python for a hundred members as for one. So there are few chunks at a time, each
with several threads for its simulators.
"""

import itertools
from dataclasses import dataclass

from hebbes.contracts.policy import estimate_state_bytes
from hebbes.execution.chunks import Task

CHUNK_SIZES = {"envpool": 32, "gymnasium": 4}
"""Default numbers of members. EnvPool is faster with large chunks. Gymnasium is not, and small ones keep all workers
busy."""
IMAGE_CHUNK_SIZE = 16
"""The largest default for images. Their simulators are slow, so that large chunks are hard to share out, and weights
and images of more members do not fit the cache."""
THREADS_CHUNK_SIZE = 128
"""The default of threads that share members evenly."""
LARGE_MEMBER = 400_000
"""Bytes of a member's weights and state, from which on threads have the default of others: more would need too much
memory."""
MAX_AT_ONCE = 6
"""Chunks of cheap policies that can be evaluated at a time. Those of more would wait for Python's lock
(`benchmarks/many_cores.py`)."""
UNHURRIED = 64
"""Size from which on a chunk takes so long for an env step that it hardly waits for the lock."""
MIN_CHUNK_SIZE = 16
"""Of threads that share members evenly, unless they see images."""


@dataclass(frozen=True)
class ChunkRule:
    """How members are cut into chunks of nearly equal size."""

    size: int
    """About this many members are in a chunk, or fewer."""
    is_even: bool = False
    """Whether all threads get the same number of chunks. Otherwise the size alone decides."""
    min_size: int = 1
    """Smallest size of a chunk where one for each thread would be smaller than `size`."""

    def count_chunks(self, num_members: int, threads: int) -> int:
        """Number of chunks for this many members, at least one. The threads are those of one worker."""
        if not self.is_even:
            return count_chunks(num_members, self.size)
        most = max(MAX_AT_ONCE, round(num_members / UNHURRIED))
        threads_of_chunk = -(-threads // most)
        at_once = max(1, min(-(-threads // threads_of_chunk), num_members // self.min_size))
        if round(num_members / (self.size * at_once)) <= 1:
            return at_once
        rounds = count_chunks(num_members, self.size * threads)
        return threads * rounds if rounds > 1 else min(threads, num_members)

    def compute_largest_chunk(self, num_members: int, threads: int) -> int:
        """Number of members in the largest chunk."""
        return -(-num_members // self.count_chunks(num_members, threads))

    def cut_into_chunks(self, members: range, threads: int) -> list[range]:
        """These members in chunks, in their order."""
        return cut_into_chunks(members, self.count_chunks(members.stop - members.start, threads))

    def count_kept_envs(self, members: range, num_workers: int, threads: int) -> int:
        """Number of sub-environments of EnvPool that each worker keeps for a purpose and a morphology.

        They are the worker's share of the members' chunks. All members before them are added, if the population grows.
        """
        count = members.stop - members.start  # may be too large for `len`
        share = -(-self.count_chunks(count, threads) // num_workers) * self.compute_largest_chunk(count, threads)
        return members.start + min(count, share)


def count_chunks(num_members: int, size: int) -> int:
    """Number of chunks of about this size, at least one."""
    return max(1, round(num_members / size))


def cut_into_chunks(members: range, num_chunks: int) -> list[range]:
    """These members in so many chunks of nearly equal size, in their order."""
    start, count = members.start, members.stop - members.start
    edges = [start + count * k // num_chunks for k in range(num_chunks + 1)]
    return [range(first, stop) for first, stop in itertools.pairwise(edges)]


def count_env_threads(threads: int, num_chunks: int) -> int:
    """Number of threads for the simulators of each of these chunks."""
    return max(1, round(threads / num_chunks))


def choose_chunk_rule(task: Task, chunk_size: int | None, *, uses_processes: bool) -> ChunkRule:
    """The rule for this chunk size, or the default for the task. Observations of three dimensions are images."""
    if chunk_size is not None:
        return ChunkRule(chunk_size)
    policy, backend = task.agent.policy, task.environment.backend
    is_even = backend == "envpool" and not (uses_processes or task.has_users_code)
    if len(policy.observation_shape) == 3:
        return ChunkRule(min(CHUNK_SIZES[backend], IMAGE_CHUNK_SIZE), is_even)
    if not is_even:
        return ChunkRule(CHUNK_SIZES[backend])
    member_bytes = 4 * policy.layout.num_params + estimate_state_bytes(policy, low_rank=False)
    size = CHUNK_SIZES[backend] if member_bytes >= LARGE_MEMBER else THREADS_CHUNK_SIZE
    return ChunkRule(size, is_even, MIN_CHUNK_SIZE)
