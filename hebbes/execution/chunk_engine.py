"""ChunkEngine: evaluates a population in chunks, on the workers of any transport."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Float64

from hebbes.contracts.engine import EPISODE_TIMEOUT, Context, Rollouts
from hebbes.contracts.errors import say
from hebbes.contracts.population import NoisePopulation, Population
from hebbes.contracts.randomness import Purpose
from hebbes.execution.chunk_rule import choose_chunk_rule, count_chunks, count_env_threads, cut_into_chunks
from hebbes.execution.chunks import (
    IDLE_PER_THREAD,
    ChunkEvaluator,
    Task,
    make_failed_rollouts,
)
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.jobs import TimeLimit
from hebbes.execution.join_rollouts import join_rollouts
from hebbes.execution.noise_sums import PART_SIZE, PairwiseSum, group_parts
from hebbes.execution.transport import Transport

STARTS_PER_SECOND = 1000
"""A new pool of EnvPool makes at least as many of the starts before an episode; 15,000 were measured."""


class ChunkEngine:
    """An Engine whose subclasses name a transport.

    Args:
        task: what every member does.
        chunk_size: about this many members are evaluated together; None: the default for the task.
        threads: the largest number of chunks that are evaluated at the same time.
        episode_timeout: a chunk may take this many seconds of wall time for each of its episodes; None: any time.
        own: what the transport takes in addition.
    """

    transport_class: ClassVar[type[Transport[Any]]]
    uses_processes: ClassVar[bool]
    shares_memory: ClassVar[bool] = True
    own_options: ClassVar[Sequence[str]] = ()
    """Fields of EngineOptions that this engine alone uses."""

    def __init__(
        self,
        task: Task,
        *,
        threads: int,
        chunk_size: int | None = None,
        episode_timeout: float | None = None,
        **own: Any,
    ) -> None:
        self._task, self._episode_timeout = task, episode_timeout
        self._rule = choose_chunk_rule(task, chunk_size, uses_processes=self.uses_processes)
        pins = task.environment.backend == "envpool" and not self.uses_processes and not task.has_users_code
        evaluator = partial(ChunkEvaluator, task, threads if pins else 1)  # what a user's code starts would stay pinned
        self._transport = self.transport_class(evaluator, threads, **own)
        self._dispatch = Dispatch(self._transport)
        self.progress = 0, 0

    def evaluate(self, population: Population, context: Context, members: range | None = None) -> Rollouts:
        """The results of the given members, or of all, in their episodes; EngineError if they cannot be had."""
        members = range(len(population)) if members is None else members
        chunks = self.cut_into_chunks(members)
        env_threads = count_env_threads(self._transport.threads_per_worker, len(chunks))
        max_idle = self._count_idle_envs(members)
        num_cases = self._task.count_cases(context)
        shared_population, shared_context = (self._transport.share(each) for each in (population, context))
        limits = self._make_limits(chunks, context, shared_population, env_threads, max_idle)
        tickets = [
            self._dispatch.submit(
                ChunkEvaluator.evaluate,
                *(shared_population, ids, shared_context, env_threads, max_idle),
                home=(context.purpose, number),
                limit=limit,
                give_up=partial(_fail_members, ids, num_cases, context),
            )
            for number, (ids, limit) in enumerate(zip(chunks, limits, strict=True))
        ]
        answers: dict[int, Rollouts] = {}
        num_done, num_members = 0, len(members)
        self.progress = num_done, num_members
        for ticket, answer in self._dispatch.collect_each(tickets):
            answers[ticket] = answer
            num_done += len(answer.returns)
            self.progress = num_done, num_members
        return join_rollouts([answers[ticket] for ticket in tickets])

    def cut_into_chunks(self, members: range) -> list[range]:
        """The chunks in which these members are evaluated."""
        return self._rule.cut_into_chunks(members, self._transport.threads_per_worker)

    def _make_limits(
        self, chunks: Sequence[range], context: Context, shared_population: Any, env_threads: int, max_idle: int
    ) -> list[TimeLimit | None]:
        """The time limit of each chunk.

        A chunk's warm-up plays one env step of the episode before, because a pool of EnvPool that has begun an episode
        is made anew to begin it again.
        """
        if self._episode_timeout is None:
            return [None] * len(chunks)
        environment, largest = self._task.environment, max(map(len, chunks))
        earlier = max(0, context.episodes[0] - 1)
        shortest = self._transport.share(replace(context, episodes=(earlier,), max_episode_steps=1))
        num_starts = earlier * largest * len(environment.morphologies) * (environment.backend == "envpool")
        return [
            TimeLimit(
                self._episode_timeout * largest * self._task.count_cases(context),
                EPISODE_TIMEOUT,
                warm_up=(shared_population, ids, shortest, env_threads, max_idle),
                prepares=(context.purpose, ids),
                extra_seconds=num_starts / STARTS_PER_SECOND,
            )
            for ids in chunks
        ]

    def weighted_noise_sums(
        self, population: NoisePopulation, utilities: Float[np.ndarray, "rows members"], powers: Sequence[int]
    ) -> Float64[np.ndarray, "rows params"]:
        """Sums over all members of utility * noise**power, one for each row; those of parts are added pairwise."""
        size, num_threads = len(population), self._num_workers * self._transport.threads_per_worker
        shared_population, shared_utilities = (self._transport.share(each) for each in (population, utilities))
        groups = group_parts(cut_into_chunks(range(size), count_chunks(size, PART_SIZE)), num_threads)
        tickets = {
            self._dispatch.submit(
                ChunkEvaluator.weighted_noise_sums,
                shared_population,
                parts,
                shared_utilities,
                powers,
                home=(Purpose.NOISE, number),
            ): number
            for number, parts in enumerate(groups)
        }
        sums = PairwiseSum(len(groups))
        for ticket, answer in self._dispatch.collect_each(tickets):
            sums.add(tickets[ticket], answer)
        return sums.total

    def submit(self, function: Callable[..., Any], *arguments: Any, urgent: bool = False) -> int:
        """Adds a job, `function(evaluator, *arguments)` with the worker's ChunkEvaluator, and returns its ticket."""
        return self._dispatch.submit(function, *arguments, urgent=urgent)

    def share(self, value: Any) -> Any:
        """What is given to `submit` in place of an argument that many jobs have, see `Engine`."""
        return self._transport.share(value)

    def collect(self, tickets: Collection[int]) -> tuple[int, Any]:
        """The ticket and the answer of the first of these jobs that is done; each answer is collected once."""
        done = self._dispatch.collect(tickets)
        assert done is not None, "it has waited"
        return done

    def close(self) -> None:
        """Stops what runs, and frees the workers with their simulators."""
        self._dispatch.close()

    @property
    def metrics(self) -> Mapping[str, float]:
        """None. Engines whose workers come and go have some."""
        return {}

    @property
    def _num_workers(self) -> int:
        return max(1, self._transport.num_workers)  # there may be none at the moment

    def _count_idle_envs(self, members: range) -> int:
        """The largest number of sub-environments that a worker keeps between evaluations of this purpose.

        On Gymnasium they serve any chunk, and few are kept. On EnvPool they serve one chunk, and a worker keeps its
        share. So a run without help between workers never frees any. Those of a chunk that a worker took from another
        one take the place of some that were not used in this generation, if there are any.
        """
        environment = self._task.environment
        if environment.backend == "gymnasium":
            largest = self._rule.compute_largest_chunk(len(members), self._transport.threads_per_worker)
            kept = IDLE_PER_THREAD * self._transport.threads_per_worker * largest
        else:
            kept = self._rule.count_kept_envs(members, self._num_workers, self._transport.threads_per_worker)
        return kept * len(environment.morphologies)


def _fail_members(ids: range, num_cases: int, context: Context, reason: str) -> Rollouts:
    purpose = context.purpose.name.lower()
    say(f"members {ids.start} to {ids.stop - 1} failed in {purpose} at generation {context.generation}: {reason}")
    return make_failed_rollouts(ids, num_cases, reason)
