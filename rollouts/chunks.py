"""Chunks: the units of work. They are cut by the config, so results do not depend on the number of workers."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int

from contracts.engine import Context, Moments, Rollouts
from contracts.environment import BatchEnv
from contracts.population import Population
from contracts.randomness import Purpose, simulator_seed, stream
from rollouts.environments import EnvironmentSpec, make_batch_env
from rollouts.episode import Agent, run_episode
from rollouts.moments import MomentTally, merged


@dataclass(frozen=True)
class Task:
    """What the members of every population of a run do; sent once to each worker."""

    agent: Agent
    environment: EnvironmentSpec
    seed: int
    render_mode: str | None = None
    """As in Gymnasium; only its back end can render."""


@dataclass(frozen=True)
class ChunkRollouts:
    """What the members of one chunk did."""

    returns: Float64[np.ndarray, "members episodes"]
    env_steps: Int[np.ndarray, "members episodes"]
    moments: Moments | None


def cut(num_members: int, chunk_size: int) -> list[range]:
    """Members 0..num_members-1 in chunks of nearly equal size, as close to `chunk_size` as that allows."""
    num_chunks = max(1, round(num_members / chunk_size))
    edges = [num_members * k // num_chunks for k in range(num_chunks + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(edges)]


def joined(chunks: Sequence[ChunkRollouts]) -> Rollouts:
    """The rollouts of all chunks, merged in chunk order."""
    return Rollouts(
        returns=np.concatenate([chunk.returns for chunk in chunks]),
        env_steps=np.concatenate([chunk.env_steps for chunk in chunks]),
        moments=merged(chunk.moments for chunk in chunks if chunk.moments is not None),
    )


def added(parts: Sequence[Float64[np.ndarray, " params"]]) -> Float64[np.ndarray, " params"]:
    """Sum in chunk order."""
    return np.add.reduce(parts)


class ChunkEvaluator:
    """Evaluates and combines chunks, and keeps their environments from one generation to the next.

    Different chunks may be evaluated at the same time from several threads, one chunk from one thread only.
    """

    def __init__(self, task: Task):
        self._task = task
        self._environments: dict[tuple[Purpose, range, bool], BatchEnv] = {}

    def evaluate(self, population: Population, ids: range, context: Context, env_threads: int) -> ChunkRollouts:
        """Every member of the chunk in every episode of the context."""
        env = self._environment(ids, context, env_threads)
        weights = population.weights(ids)
        tally = MomentTally() if context.observe else None
        results = [
            run_episode(
                self._task.agent,
                env,
                weights,
                episode,
                [self._rng(context, member, episode) for member in ids],
                buffers=context.buffers,
                max_env_steps=context.max_episode_steps,
                tally=tally,
            )
            for episode in context.episodes
        ]
        return ChunkRollouts(
            returns=np.stack([result.returns for result in results], axis=1),
            env_steps=np.stack([result.env_steps for result in results], axis=1),
            moments=None if tally is None else tally.result(),
        )

    def combine(
        self, population: Population, ids: range, utilities: Float[np.ndarray, " members"]
    ) -> Float64[np.ndarray, " params"]:
        """The chunk's share of the population's sum of utility times noise."""
        return population.combine(ids, utilities[ids.start : ids.stop])

    def close(self) -> None:
        """Frees the simulators."""
        for env in self._environments.values():
            env.close()
        self._environments.clear()

    def _rng(self, context: Context, member: int, episode: int) -> np.random.Generator:
        return stream(self._task.seed, context.purpose, generation=context.generation, member=member, episode=episode)

    def _environment(self, ids: range, context: Context, env_threads: int) -> BatchEnv:
        key = (context.purpose, ids, context.independent_seeds)
        if key not in self._environments:
            members = [member if context.independent_seeds else 0 for member in ids]
            self._environments[key] = make_batch_env(
                self._task.environment,
                [simulator_seed(self._task.seed, context.purpose, member=member) for member in members],
                threads=env_threads,
                training=context.purpose is Purpose.TRAINING,
                render_mode=self._task.render_mode,
            )
        return self._environments[key]
