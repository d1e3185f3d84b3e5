"""What a run or an evaluation would take of memory, as terms in bytes; how it was measured: benchmarks/memory.py.

The largest of the phases counts: members acting, the update of the search, a checkpoint being written, the test.
Everything is counted above what the program takes before its simulators are made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TypeAlias

from hebbes.contracts.strategy import SearchMemory
from hebbes.execution.chunks import IDLE_PER_THREAD, count_chunks

Terms: TypeAlias = Mapping[str, int]
"""Bytes by what takes them."""

WORKER_BYTES = 75_000_000
"""A worker process with all that it imports, without pages of files; 71 to 80 MB were measured."""
COMBINED_VECTORS = 3.5
"""Vectors of float64 in a thread that sums noise: the sum, a member's noise, its power and the product."""
UPDATE_VECTORS = 9
"""Vectors of float64 that an update needs beside these: the sum of the noise, its halves, the step; gaps between."""
ENCODED = 3
"""Copies of a checkpoint while it is written."""
FRAGMENTED = 1.25
"""What the search takes over the sum of what it keeps, because freed arrays leave gaps."""
RETAINED = 0.4
"""Part of what an update took that the process still has when members play again."""
MEMBER_BYTES = 250
"""Seeds, places and returns of a member, beside those of each of its cases."""
CASE_BYTES = 60
"""An episode's return and length, while the results of chunks are joined."""
EPISODE_BYTES = 1_500
"""What an episode of a chunk leaves until all episodes of the chunk are played."""
MOMENTS_BYTES = 500
"""The objects around the moments of a member's observations."""
RESAMPLED_BYTES = 100
"""Of an episode, in the resamples of the statistics that are made at the same time."""
OBSERVATIONS = 4
"""Copies of the observations of members that play: of this env step and the one before, made ready and not."""
STATES = 2
"""Copies of the members' states in use: those that are drawn and stacked, or those before and after some drop out."""


@dataclass(frozen=True)
class Network:
    """A member's policy."""

    num_params: int
    row_bytes: int
    """Weights of a member, or its low-rank factors."""
    state_bytes: int = 0
    """What changes in a member while it lives, such as plastic weights."""


@dataclass(frozen=True)
class Stage:
    """Where members play: the training's engine, or that of a test."""

    workers: bool
    """Whether chunks run in processes, else in threads."""
    keeps_all: bool
    """Whether every simulator is kept for the next generation, as EnvPool's are."""
    chunk_size: int
    simulator_bytes: int = 0
    """Of one simulator."""


@dataclass(frozen=True)
class RunSize:
    """All that the memory of a run depends on."""

    network: Network
    search: Callable[[int], SearchMemory]
    """Of a number of members."""
    training: Stage
    test: Stage
    threads: int
    popsize: int = 0
    """The most members of a generation, without the unperturbed one; 0 for an evaluation."""
    episodes_per_member: int = 1
    eval_episodes: int = 0
    test_episodes: int = 0
    bodies: int = 1
    observation_size: int = 1
    """Numbers in an observation."""
    noise_bytes: int = 0
    """What a thread keeps of other members' noise to make a member's."""
    virtual_batch: int = 0
    observes: bool = False
    """Whether the moments of each member's observations are gathered."""
    independent_seeds: bool = False


NO_SEARCH = SearchMemory(0, 0, 0)


def run_memory(size: RunSize) -> dict[str, int]:
    """The terms of the phase that takes most, the training's or the test's, those of some size."""
    phases = [_training(size)] if size.popsize else []
    phases += [_test(size)] if size.test_episodes else []
    found = max(phases, key=lambda terms: sum(terms.values()), default={})
    return {name: round(term) for name, term in found.items() if term >= 1}


def _training(size: RunSize) -> dict[str, float]:
    """Generations one after another, with an evaluation of the unperturbed policy now and then."""
    stage, members, num_params = size.training, size.popsize + 1, size.network.num_params
    search, at_once = size.search(size.popsize), _at_once(size, stage, members)
    snapshot = search.state + 4 * num_params
    sums = 8 * num_params * (2 * _num_chunks(stage, members) + COMBINED_VECTORS * at_once + UPDATE_VECTORS)
    busy = max(sums, FRAGMENTED * ENCODED * (snapshot + 4 * num_params), search.update)
    acting = _acting(size, stage, members) + size.noise_bytes * at_once
    evaluated = size.eval_episodes
    return {
        "simulators": stage.simulator_bytes * kept_simulators(size, stage, training=True),
        "worker processes": _processes(size, stage, max(members, evaluated), search.population),
        "members' weights": acting,
        "the search": FRAGMENTED * (search.state + 2 * snapshot) + max(RETAINED * busy, busy - acting),
        "observations": _observations(size, stage, members),
        "virtual batch": _reference_batch(size, at_once),
        "returns and statistics": _bookkeeping(size, members) + _bookkeeping(size, evaluated),
    }


def _test(size: RunSize) -> dict[str, float]:
    """Episodes of one policy, and the resamples of its statistics."""
    stage, members = size.test, size.test_episodes
    return {
        "simulators": stage.simulator_bytes * kept_simulators(size, stage, training=False),
        "worker processes": _processes(size, stage, members, 4 * size.network.num_params),
        "members' weights": _acting(size, stage, members),
        "observations": _observations(size, stage, members),
        "virtual batch": _reference_batch(size, _at_once(size, stage, members)),
        "returns and statistics": _bookkeeping(size, members) + RESAMPLED_BYTES * members,
    }


def _num_chunks(stage: Stage, members: int) -> int:
    return count_chunks(members, stage.chunk_size) if members else 0


def _largest_chunk(stage: Stage, members: int) -> int:
    return ceil(members / _num_chunks(stage, members)) if members else 0


def _at_once(size: RunSize, stage: Stage, members: int) -> int:
    """Chunks that are played at the same time."""
    return min(size.threads, _num_chunks(stage, members))


def kept_simulators(size: RunSize, stage: Stage, *, training: bool) -> int:
    """The most simulators that there are at a time, of the training and its evaluations or else of the test."""
    if not training:
        return _kept_more(size, stage, size.test_episodes)
    return _kept(size, stage, size.popsize + 1) + _kept_more(size, stage, size.eval_episodes)


def _kept(size: RunSize, stage: Stage, members: int) -> int:
    """Simulators that a generation leaves for the next one, those in use among them."""
    if stage.keeps_all or size.independent_seeds:
        return _kept_more(size, stage, members)
    chunks = _num_chunks(stage, members)
    kinds = 1 if members % chunks == 0 else 2  # chunks come in two sizes
    return size.bodies * min(members, kinds * _at_once(size, stage, members) * _largest_chunk(stage, members))


def _kept_more(size: RunSize, stage: Stage, members: int) -> int:
    """Simulators of members whose chunks have seeds of their own, so that none serves another chunk."""
    if stage.keeps_all:
        return size.bodies * members
    at_once, largest = _at_once(size, stage, members), _largest_chunk(stage, members)
    return min(size.bodies * members, at_once * (IDLE_PER_THREAD * size.bodies + 1) * largest)


def _processes(size: RunSize, stage: Stage, members: int, population: int) -> int:
    """Worker processes, each with the population that it was sent, which is packed for one after another."""
    if not stage.workers:
        return 0
    return min(size.threads, _num_chunks(stage, members)) * (WORKER_BYTES + 2 * population) + population


def _acting(size: RunSize, stage: Stage, members: int) -> float:
    """Weights and states of the chunks that are played at the same time."""
    return _playing(size, stage, members) * (size.network.row_bytes + STATES * size.network.state_bytes)


def _playing(size: RunSize, stage: Stage, members: int) -> int:
    """Members that play at the same time."""
    return min(members, _at_once(size, stage, members) * _largest_chunk(stage, members))


def _observations(size: RunSize, stage: Stage, members: int) -> int:
    return 4 * OBSERVATIONS * size.observation_size * _playing(size, stage, members)


def _reference_batch(size: RunSize, at_once: int) -> int:
    """The frames as they are collected and kept, and as each thread takes them."""
    return 4 * size.virtual_batch * size.observation_size * (3 + 2 * at_once)


def _bookkeeping(size: RunSize, members: int) -> int:
    cases = size.bodies * (size.episodes_per_member if size.popsize else 1)
    moments = 2 * 8 * size.observation_size + MOMENTS_BYTES if size.observes else 0
    return members * (MEMBER_BYTES + CASE_BYTES * cases + moments) + EPISODE_BYTES * cases * size.threads
