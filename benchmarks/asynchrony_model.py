"""A discrete-event simulation of how long hybrids take on several workers, from what their steps cost.

`benchmarks/asynchrony.py` measures the costs, and holds the simulation against real runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil
from typing import Any

import numpy as np

from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.hybrids.asynchronous import NUM_LENGTHS
from hebbes.hybrids.asynchronous_settings import AsynchronousSettings
from hebbes.hybrids.jobs import CRITIC_STEPS, MEAN_EPISODES
from hebbes.hybrids.rl_share import RLShare

POPULATION, RL_POPULATION = 10, 5
SEED = 0
"""The same individuals are trained as in a run with this seed."""


@dataclass(frozen=True)
class Costs:
    """Seconds that steps take on so many workers."""

    env_step: float
    """Of one episode, on one worker."""
    critic_job_step: float
    """A gradient step of the critics on one thread, while all workers are busy."""
    actor_job_step: float
    """The same for one actor."""
    critic_step: float
    """A gradient step of the critics, with as many threads as workers."""
    actor_step: float
    """The same for one actor."""
    group_step: float
    """The same for all RL individuals of a generation at once."""
    tell: float
    """The update of the search distribution."""


@dataclass(frozen=True)
class Moment:
    """How far a run is."""

    seconds: float
    env_steps: int
    critic_steps: int


class Workers:
    """Equal workers. At `submit` and `collect` whoever is free takes the next job, urgent ones first."""

    def __init__(self, count: int):
        self.now = 0.0
        self._count, self._number = count, 0
        self._waiting: list[tuple[bool, int, float, Any]] = []
        self._running: list[tuple[float, int, Any]] = []

    def submit(self, job: Any, seconds: float, *, urgent: bool = False) -> None:
        """Adds a job that takes so long."""
        self._number += 1
        heappush(self._waiting, (not urgent, self._number, seconds, job))
        self._start_jobs()

    def collect(self) -> Any:
        """Waits for the job that is done first, and returns it. Its worker is free for an urgent one."""
        self._start_jobs()
        done, _, job = heappop(self._running)
        self.now = max(self.now, done)
        return job

    def do_all(self, durations: Sequence[float]) -> None:
        """Does jobs of these durations, and waits for all of them."""
        for seconds in durations:
            self.submit(None, seconds)
        for _ in durations:
            self.collect()

    def _start_jobs(self) -> None:
        while self._waiting and len(self._running) < self._count:
            _, number, seconds, job = heappop(self._waiting)
            heappush(self._running, (self.now + seconds, number, job))


def simulate_generations(
    costs: Costs, num_workers: int, *, episode_length: int, env_steps: int, is_parallel: bool
) -> list[Moment]:
    """CEM-RL or, with `is_parallel`, P-CEM-RL. All wait for the slowest of a phase.

    The moments are the ends of generations. Nothing is trained in the first one.
    """
    workers, moments = Workers(num_workers), [Moment(0.0, 0, 0)]
    steps = POPULATION * episode_length
    critic_steps = RL_POPULATION * (steps // RL_POPULATION)
    actors = costs.group_step if is_parallel else RL_POPULATION * costs.actor_step
    while moments[-1].env_steps < env_steps:
        before = moments[-1]
        is_trained = before.env_steps > 0
        if is_trained:
            workers.do_all([critic_steps * costs.critic_step])
            workers.do_all([steps * actors])
        workers.do_all([episode_length * costs.env_step] * POPULATION)
        workers.now += costs.tell
        trained = before.critic_steps + is_trained * critic_steps
        moments.append(Moment(workers.now, before.env_steps + steps, trained))
    return moments


def simulate_aes_rl(
    costs: Costs,
    num_workers: int,
    *,
    episode_length: int,
    env_steps: int,
    start_steps: int,
    critic_job_steps: int = CRITIC_STEPS,
) -> list[Moment]:
    """AES-RL with as many individuals under way as workers, which train the critics too. Nobody waits for the others.

    The moments are those at which an individual is told.
    """
    return _AESRL(costs, num_workers, episode_length, start_steps, critic_job_steps).advance(env_steps)


class _AESRL:
    """What `hebbes.hybrids.asynchronous` decides, with jobs that only take time."""

    def __init__(self, costs: Costs, num_workers: int, episode_length: int, start_steps: int, critic_job_steps: int):
        self._costs, self._episode_length, self._start_steps = costs, episode_length, start_steps
        self._critic_job_steps = critic_job_steps
        self._workers, self._num_individuals = Workers(num_workers), num_workers
        self._share = RLShare(AsynchronousSettings().rl_share)
        self._env_steps = self._critic_steps = self._num_started = self._num_episodes = self._under_way = 0
        self._trains_critics = False

    def advance(self, env_steps: int) -> list[Moment]:
        """Goes on until an individual is told after so many env steps."""
        moments = [Moment(0.0, 0, 0)]
        while moments[-1].env_steps < env_steps:
            self._start_jobs()
            job = self._workers.collect()
            if job == "critics":
                self._critic_steps += self._critic_job_steps
                self._trains_critics = False
            elif job == "mean":
                self._workers.now += self._costs.tell
                self._under_way -= 1
                moments.append(Moment(self._workers.now, self._env_steps, self._critic_steps))
            else:
                self._take_back(is_random=job == "random")
        return moments

    def _start_jobs(self) -> None:
        while self._under_way < self._num_individuals:
            self._under_way += 1
            self._start_individual()
        if self._critic_steps < self._env_steps >= self._start_steps and not self._trains_critics:
            self._trains_critics = True
            self._workers.submit("critics", self._critic_job_steps * self._costs.critic_job_step, urgent=True)

    def _start_individual(self) -> None:
        seconds = self._episode_length * self._costs.env_step
        rng = make_generator(SEED, Purpose.RL_SHARE, generation=self._num_started)
        is_rl = self._share.draw(rng) and self._critic_steps > 0
        self._num_started += 1
        if self._env_steps < self._start_steps:
            self._workers.submit("random", seconds)
            return
        self._share.count(is_rl)
        actor_steps = is_rl * min(self._num_episodes, NUM_LENGTHS) * self._episode_length
        self._workers.submit("individual", seconds + actor_steps * self._costs.actor_job_step)

    def _take_back(self, *, is_random: bool) -> None:
        self._env_steps += self._episode_length
        self._num_episodes += 1
        if is_random:
            self._under_way -= 1
        else:
            self._workers.submit("mean", MEAN_EPISODES * self._episode_length * self._costs.env_step, urgent=True)


def extrapolate_costs(one: Costs, two: Costs, num_workers: int) -> Costs:
    """Costs on more workers than were measured, from those on one and on two. They favor the synchronous methods.

    Each RL individual of P-CEM-RL is trained by a worker of its own, as fast as if it were alone. All other gradient
    steps of CEM-RL and P-CEM-RL follow each other, and take as long as with two threads. A job of AES-RL takes as long
    as where two workers are busy.
    """
    group_step = ceil(RL_POPULATION / num_workers) * one.actor_step
    return Costs(**{**vars(two), "group_step": group_step})


def measure_seconds(moments: Sequence[Moment], first: int, last: int) -> float:
    """Seconds between these numbers of env steps, interpolated between moments."""
    env_steps, seconds = ([getattr(each, name) for each in moments] for name in ("env_steps", "seconds"))
    start, end = np.interp([first, last], env_steps, seconds)
    return float(end - start)
