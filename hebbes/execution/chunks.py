"""Chunks: groups of members that are evaluated together."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Event, Lock, get_ident
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from hebbes.contracts.engine import Context, EngineError, Rollouts
from hebbes.contracts.environment import BatchEnv
from hebbes.contracts.errors import describe_error
from hebbes.contracts.policy import LowRankWeights, Weights
from hebbes.contracts.population import NoisePopulation, Population
from hebbes.contracts.randomness import Purpose, derive_simulator_seed, make_generator
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.execution.cores import Cores
from hebbes.execution.episode import AbandonedError, Agent, EpisodeResult, run_episode
from hebbes.execution.join_rollouts import sum_entries
from hebbes.execution.noise_sums import sum_noise_of_parts
from hebbes.execution.observation_moments import MomentTally
from hebbes.execution.transitions import TransitionRecorder
from hebbes.policies.mean_squares import compute_mean_squares
from hebbes.registry.lookup import list_users_modules
from hebbes.registry.users_classes import convert_policy_errors, describe_class

IDLE_PER_THREAD = 2
"""Environments of the Gymnasium back end that are kept for each thread and morphology: chunks have one of two sizes."""


@dataclass(frozen=True)
class EnvKey:
    """What an environment was made for."""

    purpose: Purpose
    seeds: tuple[int, ...]
    """One of each sub-environment."""
    morphology: str
    chunk: range | None
    """None: any chunk."""


class _IdleEnv(NamedTuple):
    """An environment that is kept, with the generation and the thread of its last use."""

    key: EnvKey
    env: BatchEnv
    generation: int
    thread: int


@dataclass(frozen=True)
class Task:
    """What every member of a run does. It is sent to each worker once."""

    agent: Agent
    environment: EnvironmentSpec
    seed: int
    modules: tuple[str, ...] = ()
    """Modules of the user's own code that workers may need, in addition to those of agent and environment."""

    @property
    def has_users_code(self) -> bool:
        """Whether code takes part that may be the user's. Its last bits may depend on how many members act together."""
        names = [describe_class(self.agent.policy), *(each.name for each in self.environment.batch_wrappers)]
        return bool(self.modules or list_users_modules(names))

    def count_cases(self, context: Context) -> int:
        """Number of cases of a member: each episode of the context in each morphology."""
        return len(context.episodes) * len(self.environment.morphologies)

    def check_can_be_sent(self, pickle: Callable[[object], object]) -> None:
        """ValueError for a part that cannot be pickled."""
        for name, part in (("policy", self.agent.policy), ("environment", self.environment)):
            try:
                pickle(part)
            except Exception as error:  # whatever a user's class raises
                raise ValueError(f"the {name} cannot be sent to workers: {describe_error(error)}") from error


def make_failed_rollouts(ids: range, num_cases: int, reason: str) -> Rollouts:
    """Rollouts of a chunk in which every episode failed for this reason."""
    shape, failed = (len(ids), num_cases), np.full(len(ids), np.nan)
    faults = {reason: shape[0] * shape[1]}
    nothing = (None,) * len(ids)
    return Rollouts(np.full(shape, np.nan), np.zeros(shape, np.int64), failed, nothing, nothing, faults)


def _take_rows(population: Population, weights: Weights, shape: tuple[int, int]) -> Weights:
    """A population's weights; EngineError if they are not float32 of this shape. Those of a user's may be anything."""
    if isinstance(weights, LowRankWeights):
        return weights
    found = f"a {type(weights).__name__}"
    if isinstance(weights, np.ndarray):
        if weights.shape == shape and weights.dtype == np.float32:
            return np.ascontiguousarray(weights)
        found = f"{weights.dtype} of shape {weights.shape}"
    raise EngineError(f"population {describe_class(population)}: weights must be float32 of shape {shape}, got {found}")


class ChunkEvaluator:
    """Evaluates chunks and computes their weighted noise sums. Several threads may evaluate different chunks at once.

    Environments are kept from one generation to the next. EnvPool's are kept for each chunk, because a pool can only go
    forward to later episodes. Gymnasium's serve any chunk with the same seeds, which is any of the same size if members
    share their seeds, and else only the same one. Few of them are kept, because a PyBullet simulator takes about 30 MB.
    """

    def __init__(self, task: Task, threads: int = 1):
        self._task = task
        self._cores = Cores(threads)
        self._idle: dict[Purpose, list[_IdleEnv]] = defaultdict(list)
        """The environment that was used last is the last one."""
        self._max_idle: dict[Purpose, int] = defaultdict(int)
        self._lock = Lock()
        self._abandoned = Event()

    def evaluate(
        self,
        population: Population,
        ids: range,
        context: Context,
        env_threads: int = 1,
        max_idle: int = 0,
        *,
        recorder: TransitionRecorder | None = None,
    ) -> Rollouts:
        """The results of the chunk's members in every episode and every morphology.

        `max_idle` sub-environments are kept for later calls of the same purpose, or as many as an earlier one has said,
        if that is more. A recorder of the caller's own may change the actions.
        """
        policy = self._task.agent.policy
        weights = _take_rows(population, population.weights(ids), (len(ids), policy.layout.num_params))
        tally = MomentTally(len(ids)) if context.observe_moments else None
        if recorder is None and context.collect_transitions:
            recorder = TransitionRecorder(len(ids))
        by_morphology = []
        for morphology in self._task.environment.morphologies:
            key = self._make_key(ids, context, morphology)
            env = self._take_env(key, env_threads)
            try:
                with convert_policy_errors(policy, EngineError):
                    played = self._play(env, weights, ids, context, env_threads, tally=tally, recorder=recorder)
                by_morphology.append(played)
            except BaseException:
                env.close()
                raise
            self._return_env(key, env, max_idle, context.generation)
        results = [result for same_episode in zip(*by_morphology, strict=True) for result in same_episode]
        return Rollouts(
            returns=np.stack([result.returns for result in results], axis=1),
            env_steps=np.stack([result.env_steps for result in results], axis=1),
            mean_squared_weights=compute_mean_squares(weights),
            moments=(None,) * len(ids) if tally is None else tally.compute_moments(),
            transitions=(None,) * len(ids) if recorder is None else recorder.split_by_member(),
            faults=sum_entries(result.faults for result in results),
            tallies=sum_entries(result.tallies for result in results),
        )

    def weighted_noise_sums(
        self,
        population: NoisePopulation,
        parts: Sequence[range],
        utilities: Float[np.ndarray, "rows members"],
        powers: Sequence[int],
    ) -> Float64[np.ndarray, "rows params"]:
        """The weighted noise sums over these parts of the population."""
        return sum_noise_of_parts(population, parts, utilities, powers)

    def abandon(self) -> None:
        """Makes every `evaluate`, running or later, raise AbandonedError at its next env step."""
        self._abandoned.set()

    def check_abandoned(self) -> None:
        """AbandonedError after `abandon`: a job that takes long without env steps asks in its loop."""
        if self._abandoned.is_set():
            raise AbandonedError

    def close(self) -> None:
        """Frees the simulators."""
        with self._lock:
            envs = [each.env for idle in self._idle.values() for each in idle]
            self._idle.clear()
        for env in envs:
            env.close()

    def _play(
        self,
        env: BatchEnv,
        weights: Weights,
        ids: range,
        context: Context,
        env_threads: int,
        *,
        tally: MomentTally | None,
        recorder: TransitionRecorder | None,
    ) -> list[EpisodeResult]:
        """Plays the context's episodes one after another."""
        results = []
        for episode in context.episodes:
            rngs = [self._make_rng(context, member, episode) for member in ids]
            with self._cores.pin_thread() if env_threads == 1 else nullcontext():  # several need several cores
                result = run_episode(
                    self._task.agent,
                    env,
                    weights,
                    episode,
                    rngs,
                    buffers=context.buffers,
                    max_episode_steps=context.max_episode_steps,
                    tally=tally,
                    collector=recorder,
                    abandoned=self._abandoned,
                )
            results.append(result)
        return results

    def _make_rng(self, context: Context, member: int, episode: int) -> np.random.Generator:
        return make_generator(
            self._task.seed, context.purpose, generation=context.generation, member=member, episode=episode
        )

    def _make_key(self, ids: range, context: Context, morphology: str) -> EnvKey:
        shared_by = context.members_per_seed
        groups = [0 if shared_by is None else member // shared_by for member in ids]
        seeds = tuple(derive_simulator_seed(self._task.seed, context.purpose, member=group) for group in groups)
        chunk = ids if self._task.environment.backend == "envpool" else None
        return EnvKey(context.purpose, seeds, morphology, chunk)

    def _take_env(self, key: EnvKey, env_threads: int) -> BatchEnv:
        """An idle environment that was made for this key, or a new one.

        It is this thread's last one if possible. A job that computes gradients before it plays would find that others
        have meanwhile played later episodes in that of another thread.
        """
        with self._lock:
            idle = self._idle[key.purpose]
            fitting = [number for number, each in enumerate(idle) if each.key == key]
            own = [number for number in fitting if idle[number].thread == get_ident()]
            if fitting:
                return idle.pop((own or fitting)[0]).env
        training = key.purpose is Purpose.TRAINING
        return make_batch_env(
            self._task.environment, key.seeds, threads=env_threads, training=training, morphology=key.morphology
        )

    def _return_env(self, key: EnvKey, env: BatchEnv, max_idle: int, generation: int) -> None:
        """Keeps the environment for later use. If there are too many, frees those that were unused for longest.

        If all were used in this generation, it frees this one: the others will be used in the same order again, and
        each would be made anew if the one that is needed next were freed.
        """
        surplus = []
        with self._lock:
            most = self._max_idle[key.purpose] = max(self._max_idle[key.purpose], max_idle)
            idle = self._idle[key.purpose]
            idle.append(_IdleEnv(key, env, generation, get_ident()))
            while sum(each.env.num_envs for each in idle) > most:
                was_used = idle[0].generation == generation
                surplus.append(idle.pop(-1 if was_used else 0).env)
        for each in surplus:
            each.close()
