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
    """Chunks with fewer members are joined, although a thread then has none."""

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


CHUNKS_OF_THREADS = ChunkRule(128, at_once=6, least=16)
"""The default of threads. An env step of more chunks at once would wait for Python's lock."""
CHUNKS_OF_IMAGES = ChunkRule(16, at_once=6)
"""The default of threads for images. Their simulators are slow, and the weights and images of more members do not fit
the cache."""
CHUNK_SIZES = {"envpool": 32, "gymnasium": 4}
"""Numbers of members in other chunks. EnvPool is faster with large batches. Gymnasium is not, and small chunks keep all
workers busy."""


def choose_chunk_rule(task: "Task", chunk_size: int | None, *, uses_processes: bool) -> ChunkRule:
    """How members are cut, into chunks of this size or by default. Observations of three dimensions are images."""
    if chunk_size is not None:
        return ChunkRule(chunk_size)
    backend = task.environment.backend
    of_threads = CHUNKS_OF_IMAGES if len(task.agent.policy.observation_shape) == 3 else CHUNKS_OF_THREADS
    if backend == "envpool" and not (uses_processes or task.has_users_code):
        return of_threads
    return ChunkRule(min(CHUNK_SIZES[backend], of_threads.size))
