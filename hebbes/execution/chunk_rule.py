"""ChunkRule: how many members are evaluated together. It decides how fast that is.

Results must not depend on the number of workers. So where a crash may fail a chunk, or bits may depend on who acts
together, its size alone decides who is in it. Elsewhere the threads share the members out evenly. Only one of them at a
time can run Python, of which an env step of a chunk takes as much for one member as for a hundred.
"""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hebbes.execution.chunks import Task


@dataclass(frozen=True)
class ChunkRule:
    """How members are cut into chunks of nearly equal size."""

    size: int
    """Chunks have about as many members, or fewer."""
    at_once: int = 1
    """Chunks that are evaluated at once, at most. Each gets as many threads, and each thread as many chunks."""
    least: int = 1
    """Where there are several, chunks have at least as many members."""

    def count(self, num_members: int, threads: int = 1) -> int:
        """Number of chunks for this many members, at least one."""
        threads_of_chunk = -(-threads // self.at_once)
        at_once = max(1, min(-(-threads // threads_of_chunk), num_members // self.least))
        return at_once * max(1, round(num_members / (self.size * at_once)))

    def compute_largest(self, num_members: int, threads: int = 1) -> int:
        """Number of members in the largest chunk."""
        return -(-num_members // self.count(num_members, threads))

    def cut(self, members: range, threads: int = 1) -> list[range]:
        """These members in chunks, in their order."""
        start, count = members.start, members.stop - members.start
        num_chunks = self.count(count, threads)
        edges = [start + count * k // num_chunks for k in range(num_chunks + 1)]
        return [range(first, stop) for first, stop in itertools.pairwise(edges)]

    def count_kept_envs(self, members: range, num_workers: int, threads: int = 1) -> int:
        """Number of sub-environments of EnvPool that each worker keeps for a purpose and a morphology.

        They are the worker's share of the members' chunks. All members before them are added, if the population grows.
        """
        count = members.stop - members.start  # may be too large for `len`
        share = -(-self.count(count, threads) // num_workers) * self.compute_largest(count, threads)
        return members.start + min(count, share)


CHUNK_SIZES = {"envpool": 32, "gymnasium": 4}
"""Numbers of members. EnvPool is faster with large chunks. Gymnasium is not, and small ones keep all workers busy."""
IMAGE_CHUNK_SIZE = 16
"""At most, for images. Their simulators are slow, so that large chunks are hard to share out, and weights and images of
more members do not fit the cache."""
THREADS_CHUNK_SIZE, MOST_AT_ONCE, LEAST = 128, 6, 16
"""What threads share out evenly. More chunks at once would wait for Python's lock."""
LARGE_NETWORK = 100_000
"""Parameters of a member, from which on threads have chunks of the usual size: more would take too much memory."""


def choose_chunk_rule(task: "Task", chunk_size: int | None, *, uses_processes: bool) -> ChunkRule:
    """How members are cut, into chunks of this size or by default. Observations of three dimensions are images."""
    if chunk_size is not None:
        return ChunkRule(chunk_size)
    policy, backend = task.agent.policy, task.environment.backend
    sees_images = len(policy.observation_shape) == 3
    size = min(CHUNK_SIZES[backend], IMAGE_CHUNK_SIZE) if sees_images else CHUNK_SIZES[backend]
    if backend != "envpool" or uses_processes or task.has_users_code:
        return ChunkRule(size)
    if sees_images:
        return ChunkRule(size, MOST_AT_ONCE)
    return ChunkRule(THREADS_CHUNK_SIZE if policy.layout.num_params < LARGE_NETWORK else size, MOST_AT_ONCE, LEAST)
