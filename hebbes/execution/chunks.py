"""Chunks: the units of work. They are cut by the config, so results do not depend on the number of workers."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Lock
from typing import TypeAlias, TypeVar

import numpy as np
from jaxtyping import Float, Float64

from hebbes.contracts.engine import Context, Rollouts
from hebbes.contracts.environment import BatchEnv
from hebbes.contracts.policy import Weights
from hebbes.contracts.population import Population
from hebbes.contracts.randomness import Purpose, simulator_seed, stream
from hebbes.environments.spec import EnvironmentSpec, make_batch_env
from hebbes.execution.episode import OVERFLOWED, Agent, EpisodeResult, run_episode
from hebbes.execution.observation_moments import MomentTally

Number = TypeVar("Number", int, float)

IDLE_PER_THREAD = 2
"""Environments of the Gymnasium back end that are kept for each thread and body: chunks come in two sizes."""

Key: TypeAlias = tuple[Purpose, tuple[int, ...], str, range | None]
"""What an environment was made for: purpose, seeds and body of its copies, and the chunk where it belongs to one."""


@dataclass(frozen=True)
class Task:
    """What the members of every population of a run do; sent once to each worker."""

    agent: Agent
    environment: EnvironmentSpec
    seed: int

    def num_cases(self, context: Context) -> int:
        """How many episodes a member plays: each of the context's in each body."""
        return len(context.episodes) * len(self.environment.bodies)


def count_chunks(num_members: int, chunk_size: int) -> int:
    """How many chunks members are cut into, one at least."""
    return max(1, round(num_members / chunk_size))


def cut(num_members: int, chunk_size: int, first: int = 0) -> list[range]:
    """Members first..num_members-1 in chunks of nearly equal size, as close to `chunk_size` as that allows."""
    count = num_members - first
    num_chunks = count_chunks(count, chunk_size)
    edges = [first + count * k // num_chunks for k in range(num_chunks + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(edges)]


def joined(chunks: Sequence[Rollouts]) -> Rollouts:
    """The rollouts of all chunks, or of all rounds of a population that has grown, in member order."""
    return Rollouts(
        returns=np.concatenate([chunk.returns for chunk in chunks]),
        env_steps=np.concatenate([chunk.env_steps for chunk in chunks]),
        moments=tuple(itertools.chain.from_iterable(chunk.moments for chunk in chunks)),
        faults=summed(chunk.faults for chunk in chunks),
        tallies=summed(chunk.tallies for chunk in chunks),
    )


def failed(ids: range, num_cases: int, reason: str) -> Rollouts:
    """The rollouts of a chunk of which nothing is known but that it cannot be evaluated."""
    shape = len(ids), num_cases
    faults = {reason: shape[0] * shape[1]}
    return Rollouts(np.full(shape, np.nan), np.zeros(shape, np.int64), (None,) * len(ids), faults)


def summed(parts: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    """The sum of each entry over all the parts; entries in the order in which they come first."""
    total: dict[str, Number] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total


def added(parts: Sequence[Float64[np.ndarray, " params"]]) -> Float64[np.ndarray, " params"]:
    """Sum in chunk order."""
    return np.add.reduce(parts)


def _overflowing_means(returns: Float64[np.ndarray, "members cases"]) -> dict[str, int]:
    """Makes the returns of members NaN whose mean is infinite, and says how many episodes that were."""
    with np.errstate(over="ignore"):
        infinite = np.isinf(returns.mean(axis=1))
    returns[infinite] = np.nan
    return {OVERFLOWED: int(infinite.sum()) * returns.shape[1]} if infinite.any() else {}


class ChunkEvaluator:
    """Evaluates and combines chunks; different chunks may be evaluated at the same time from several threads.

    Environments are kept from one generation to the next. EnvPool's are kept for each chunk, because a pool can only go
    on to later episodes; Gymnasium's serve any chunk of their size, and few are kept, because a PyBullet world takes
    some 30 MB.
    """

    def __init__(self, task: Task, threads: int):
        self._task = task
        self._idle: list[tuple[Key, BatchEnv]] = []
        self._lock = Lock()
        self._abandoned = Event()
        most = IDLE_PER_THREAD * threads * len(task.environment.bodies)
        self._max_idle = most if task.environment.backend == "gymnasium" else None

    def evaluate(self, population: Population, ids: range, context: Context, env_threads: int) -> Rollouts:
        """Every member of the chunk in every episode of the context, in every body."""
        weights = population.weights(ids)
        tally = MomentTally(len(ids)) if context.observe else None
        by_body = []
        for body in self._task.environment.bodies:
            key = self._key(ids, context, body)
            env = self._take(key, context, env_threads)
            try:
                by_body.append(self._play(env, weights, ids, context, tally))
            except BaseException:
                env.close()
                raise
            self._give_back(key, env)
        results = [result for of_episode in zip(*by_body, strict=True) for result in of_episode]
        returns = np.stack([result.returns for result in results], axis=1)
        return Rollouts(
            returns=returns,
            env_steps=np.stack([result.env_steps for result in results], axis=1),
            moments=(None,) * len(ids) if tally is None else tally.result(),
            faults=summed([*(result.faults for result in results), _overflowing_means(returns)]),
            tallies=summed(result.tallies for result in results),
        )

    def combine(
        self, population: Population, ids: range, utilities: Float[np.ndarray, " members"], power: int
    ) -> Float64[np.ndarray, " params"]:
        """The chunk's share of the population's sum of utility times noise to the power."""
        return population.combine(ids, utilities[ids.start : ids.stop], power)

    def abandon(self) -> None:
        """Ends `evaluate`, for good and in all threads, with AbandonedError at the next env step."""
        self._abandoned.set()

    def close(self) -> None:
        """Frees the simulators."""
        while self._idle:
            self._idle.pop()[1].close()

    def _play(
        self, env: BatchEnv, weights: Weights, ids: range, context: Context, tally: MomentTally | None
    ) -> list[EpisodeResult]:
        """The context's episodes, one after another."""
        return [
            run_episode(
                self._task.agent,
                env,
                weights,
                episode,
                [self._rng(context, member, episode) for member in ids],
                buffers=context.buffers,
                max_env_steps=context.max_episode_steps,
                tally=tally,
                abandoned=self._abandoned,
            )
            for episode in context.episodes
        ]

    def _rng(self, context: Context, member: int, episode: int) -> np.random.Generator:
        return stream(self._task.seed, context.purpose, generation=context.generation, member=member, episode=episode)

    def _key(self, ids: range, context: Context, body: str) -> Key:
        members = [member if context.independent_seeds else 0 for member in ids]
        seeds = tuple(simulator_seed(self._task.seed, context.purpose, member=member) for member in members)
        return context.purpose, seeds, body, ids if self._max_idle is None else None

    def _take(self, key: Key, context: Context, env_threads: int) -> BatchEnv:
        """An idle environment of these seeds in this body, or a new one."""
        with self._lock:
            for number, (other, env) in enumerate(self._idle):
                if other == key:
                    del self._idle[number]
                    return env
        training = context.purpose is Purpose.TRAINING
        return make_batch_env(self._task.environment, key[1], threads=env_threads, training=training, body=key[2])

    def _give_back(self, key: Key, env: BatchEnv) -> None:
        """Keeps the environment for the next chunk or generation, and frees the one unused for longest."""
        with self._lock:
            self._idle.append((key, env))
            surplus = self._idle.pop(0)[1] if self._max_idle is not None and len(self._idle) > self._max_idle else None
        if surplus is not None:
            surplus.close()
