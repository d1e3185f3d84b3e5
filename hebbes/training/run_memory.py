"""Estimates the peak memory of a run or an evaluation, as terms in bytes. benchmarks/memory.py measures them.

It is the maximum over phases: members act, the search updates, a checkpoint is written, the best policy is tested.
The memory that the program has before it makes simulators is not counted.
"""

from dataclasses import dataclass

from hebbes.contracts.trainer import SearchSize
from hebbes.execution.chunk_rule import ChunkRule, count_chunks
from hebbes.execution.chunks import IDLE_PER_THREAD
from hebbes.execution.noise_sums import PART_SIZE, count_kept_arrays

WORKER_BYTES = 75_000_000
"""Bytes of a worker process with its imports, without pages of files; 71 to 80 MB were measured."""
NOISE_SUMS = 2.5
"""Weighted noise sums of a generation: those of two halves, and with a sigma for each parameter that of squares."""
NOISE_SUM_VECTORS = 1.5
"""Vectors of float64 in a thread that computes weighted noise sums: a member's noise in float32, and its product."""
UPDATE_VECTORS = 13
"""Vectors of float64 that an update needs after the sums: these, gradient, step, and the optimizer's temporaries."""
ENCODED = 3
"""Copies of a checkpoint in memory while it is written."""
FRAGMENTED = 1.25
"""Factor on the bytes that the search keeps, because freed arrays leave gaps."""
RETAINED = 0.4
"""Share of an update's memory that the process still holds when members play again."""
MEMBER_BYTES = 250
"""Seeds, indices and returns of a member, in addition to those of each of its cases."""
CASE_BYTES = 60
"""Return and length of an episode, while the results of chunks are joined."""
EPISODE_BYTES = 1_500
"""What an episode keeps until all episodes of its chunk are played."""
MOMENTS_BYTES = 500
"""Python objects that hold the moments of a member's observations."""
RESAMPLED_BYTES = 100
"""Bytes per episode in the bootstrap resamples that are in memory at the same time."""
OBSERVATIONS = 4
"""Copies of the observations of members that play: of this env step and the previous one, each raw and wrapped."""
STATES = 2
"""Copies of the members' states: as drawn and as stacked, or before and after some members finish."""


@dataclass(frozen=True)
class NetworkSize:
    """Sizes of a member's policy."""

    num_params: int
    row_bytes: int
    """Weights of a member, or its low-rank factors."""
    state_bytes: int = 0
    """What changes within an episode, such as plastic weights."""


@dataclass(frozen=True)
class Stage:
    """The engine of training, or that of the test."""

    uses_processes: bool
    """Whether chunks run in worker processes. Otherwise they run in threads."""
    keeps_all: bool
    """Whether a worker keeps the simulators of its share of the members for the next generation, as on EnvPool."""
    chunk_rule: ChunkRule
    simulator_bytes: int = 0
    """Of one simulator."""


@dataclass(frozen=True)
class RunSize:
    """All quantities that the memory of a run depends on."""

    network: NetworkSize
    search: SearchSize
    """That of the trainer. An evaluation has none, see `NO_SEARCH`."""
    training: Stage
    test: Stage
    threads: int
    eval_episodes: int = 0
    test_episodes: int = 0
    morphologies: int = 1
    observation_size: int = 1
    """Numbers in an observation."""
    virtual_batch: int = 0
    normalizes_observations: bool = False
    """Whether the moments of each member's observations are computed."""


NO_SEARCH = SearchSize(population_size=0)


def estimate_memory(size: RunSize) -> dict[str, int]:
    """Bytes by term, of training or of the test, whichever needs more; terms of zero are left out."""
    phases = [_estimate_training(size)] if size.search.population_size else []
    phases += [_estimate_test(size)] if size.test_episodes else []
    found = max(phases, key=lambda terms: sum(terms.values()), default={})
    return {name: round(term) for name, term in found.items() if term >= 1}


def _estimate_training(size: RunSize) -> dict[str, float]:
    """Bytes by term of training: generations, and evaluations of the mean policy."""
    stage, members, num_params = size.training, size.search.population_size + 1, size.network.num_params
    search, at_once = size.search.estimate_memory(), _count_chunks_at_once(size, stage, members)
    snapshot = search.state + 4 * num_params
    num_parts = count_chunks(members, PART_SIZE)
    num_summing = min(size.threads, num_parts)
    kept = NOISE_SUMS * count_kept_arrays(num_parts, num_summing)
    sums = 8 * num_params * max(kept + NOISE_SUM_VECTORS * num_summing, UPDATE_VECTORS)
    busy = max(sums, FRAGMENTED * ENCODED * (snapshot + 4 * num_params), search.update)
    acting = _estimate_acting(size, stage, members) + size.search.noise_bytes * max(at_once, num_summing)
    evaluated = size.eval_episodes
    num_shares = max(_count_chunks(size, stage, max(members, evaluated)), num_parts)
    return {
        "simulators": stage.simulator_bytes * count_simulators(size, training=True),
        "worker processes": _estimate_processes(
            size, stage, num_shares, search.population, jobs=size.search.worker_jobs, job_bytes=size.search.worker_bytes
        ),
        "members' weights": acting,
        "the search": FRAGMENTED * (search.state + 2 * snapshot) + max(RETAINED * busy, busy - acting),
        "the replay": size.search.count_segment_bytes(),
        "observations": _estimate_observations(size, stage, members),
        "virtual batch": _estimate_virtual_batch(size, at_once),
        "returns and statistics": _estimate_bookkeeping(size, members) + _estimate_bookkeeping(size, evaluated),
    }


def _estimate_test(size: RunSize) -> dict[str, float]:
    """Bytes by term of a test: episodes of one policy, and the resamples of its statistics."""
    stage, members = size.test, size.test_episodes
    return {
        "simulators": stage.simulator_bytes * count_simulators(size, training=False),
        "worker processes": _estimate_processes(
            size, stage, _count_chunks(size, stage, members), 4 * size.network.num_params
        ),
        "members' weights": _estimate_acting(size, stage, members),
        "observations": _estimate_observations(size, stage, members),
        "virtual batch": _estimate_virtual_batch(size, _count_chunks_at_once(size, stage, members)),
        "returns and statistics": _estimate_bookkeeping(size, members) + RESAMPLED_BYTES * members,
    }


def _count_chunks(size: RunSize, stage: Stage, members: int) -> int:
    return stage.chunk_rule.count_chunks(members, size.threads) if members else 0


def _count_chunks_at_once(size: RunSize, stage: Stage, members: int) -> int:
    """Number of chunks that are played at the same time."""
    return min(size.threads, _count_chunks(size, stage, members))


def _count_playing_members(size: RunSize, stage: Stage, members: int) -> int:
    """Number of members that play at the same time."""
    largest_chunk = stage.chunk_rule.compute_largest_chunk(members, size.threads)
    return min(members, _count_chunks_at_once(size, stage, members) * largest_chunk)


def count_simulators(size: RunSize, *, training: bool) -> int:
    """The largest number of simulators at a time: of training and its evaluations, or else of the test."""
    stage = size.training if training else size.test
    evaluated = size.eval_episodes if training else size.test_episodes
    members = size.search.population_size + 1 if training else 0
    if stage.keeps_all:
        return _count_pools(size, stage, range(members if size.search.grows else 0, members), evaluated)
    kept = _count_kept_simulators(size, stage, members) if training else 0
    return kept + _count_seeded_simulators(size, stage, evaluated)


def _count_pools(size: RunSize, stage: Stage, population: range, evaluated: int) -> int:
    """Number of simulators in EnvPool's pools, those of training with those of another policy's episodes.

    A population that grows ends with a round whose earlier members may all be kept.
    """
    num_workers = size.threads if stage.uses_processes else 1
    started = min(num_workers, max(_count_chunks(size, stage, each) for each in (population.stop, evaluated)))
    cases, rule = (population, range(evaluated)), stage.chunk_rule
    kept = [rule.count_kept_envs(members, num_workers, size.threads) for members in cases]
    return size.morphologies * started * sum(kept)


def _count_kept_simulators(size: RunSize, stage: Stage, members: int) -> int:
    """Number of simulators of Gymnasium that are in use or kept for the next generation."""
    if size.search.members_per_seed is not None:
        return _count_seeded_simulators(size, stage, members)
    chunks = _count_chunks(size, stage, members)
    kinds = 1 if members % chunks == 0 else 2  # chunks come in two sizes
    return size.morphologies * min(members, kinds * _count_playing_members(size, stage, members))


def _count_seeded_simulators(size: RunSize, stage: Stage, members: int) -> int:
    """Number of simulators of Gymnasium if each chunk has its own seeds, so that no other chunk can use them."""
    most = (IDLE_PER_THREAD * size.morphologies + 1) * _count_playing_members(size, stage, members)
    return min(size.morphologies * members, most)


def _estimate_processes(
    size: RunSize, stage: Stage, num_shares: int, population: int, *, jobs: int = 0, job_bytes: int = 0
) -> int:
    """Bytes of the worker processes with their copies of the population, which is serialized for one at a time.

    `num_shares` are those of a population: its chunks, or parts of a noise sum. Each worker does other jobs sooner or
    later if there are any.
    """
    if not stage.uses_processes:
        return 0
    workers = min(size.threads, max(num_shares, jobs))
    return workers * (WORKER_BYTES + 2 * population + (job_bytes if jobs else 0)) + population


def _estimate_acting(size: RunSize, stage: Stage, members: int) -> float:
    """Bytes of the weights and states of the chunks that are played at the same time."""
    return _count_playing_members(size, stage, members) * (size.network.row_bytes + STATES * size.network.state_bytes)


def _estimate_observations(size: RunSize, stage: Stage, members: int) -> int:
    return 4 * OBSERVATIONS * size.observation_size * _count_playing_members(size, stage, members)


def _estimate_virtual_batch(size: RunSize, at_once: int) -> int:
    """Bytes of the virtual batch: its frames as collected and kept, and the copies of each thread."""
    return 4 * size.virtual_batch * size.observation_size * (3 + 2 * at_once)


def _estimate_bookkeeping(size: RunSize, members: int) -> int:
    cases = size.morphologies * size.search.episodes_per_member
    moments = 2 * 8 * size.observation_size + MOMENTS_BYTES if size.normalizes_observations else 0
    return members * (MEMBER_BYTES + CASE_BYTES * cases + moments) + EPISODE_BYTES * cases * size.threads
