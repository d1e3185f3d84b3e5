"""The asynchronous hybrids: individuals are trained, evaluated and told one by one, and nobody waits for the others.

Lee, Lee, Shin & Kweon 2020, arXiv 2012.05417; code KyunghyunLee/aes-rl 5b69a06, algorithm/aes.py. There are always
`actor_workers` individuals under way. For each of them:

    draw it from the distribution; decide by RLShare whether it is trained
    if so: a new optimizer, and as many steps as the last ten episodes were long, on the latest critics that are ready
    one episode without noise, whose transitions enter the replay; then five of the mean policy as it is by now
    tell the distribution both returns

Meanwhile one job after another trains the critics for 1000 steps, with the mean policy as the fixed target actor, as
long as they have taken fewer steps than there are env steps. Two at a time would drop the steps of one, because each
goes on from the latest critics. Until `start_steps`, individuals act at random, and nothing is trained or told.

All decisions are made by one owner, which blocks until a job is done. Jobs (`hebbes.hybrids.jobs`) only compute. Their
results depend on the order of completions alone, which a `CompletionLog` keeps. Departures:

- Returns of random actions are not told. Theirs are.
- Individuals under way at the end of the budget are kept for a longer one. Theirs are trained, played and told.
- No individual is trained before the critics' first job is done.
- With `rl_share` 0, which theirs refuses, nothing is collected, and no action is random.
- A job samples the replay as it was when the job was handed out. Theirs samples it as it is at each gradient step.
- Noise on target actions is in units of half their range, as in TD3. Theirs is not scaled.
- On the Gymnasium back end, an episode that ends in a terminal state at its time limit is terminal. Theirs never is,
  and EnvPool does not tell.
"""

from collections.abc import Mapping
from dataclasses import asdict
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.engine import Engine, EngineError
from hebbes.contracts.notices import make_failure_notices
from hebbes.contracts.plain_values import prefix_arrays
from hebbes.contracts.policy import Buffers
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.trainer import AllFailedError, Progress, TrainerState, UnitResult
from hebbes.hybrids import core, jobs
from hebbes.hybrids.algorithm import Algorithm
from hebbes.hybrids.asynchronous_settings import AsynchronousSettings
from hebbes.hybrids.completion_log import CompletionLog, extend_history
from hebbes.hybrids.counters import Counters, JobTally
from hebbes.hybrids.first_env_step_failures import FirstEnvStepFailures
from hebbes.hybrids.flights import Flight, pack_flights, unpack_flights
from hebbes.hybrids.jobs import CriticsAnswer, CriticsJob, IndividualAnswer, IndividualJob, MeanAnswer, MeanJob
from hebbes.hybrids.rl_share import RLShare
from hebbes.hybrids.search_distribution import SearchDistribution
from hebbes.policies.mlp import MLP

if TYPE_CHECKING:
    from hebbes.execution.chunks import Task

NUM_LENGTHS = 10
"""Episodes whose lengths, added, are the number of an individual's gradient steps."""
NO_MEAN_POLICY = {"mean_policy_return": nan, "mean_policy_lag": nan, "mean_policy_env_steps": 0}
"""Metrics of an individual that is not compared with the mean policy."""


class Asynchronous(Algorithm):
    """Unit: one individual that has been told, or has acted at random."""

    Settings: ClassVar[type[AsynchronousSettings]] = AsynchronousSettings
    Distribution: ClassVar[type[SearchDistribution]]
    unit = "individual"

    def __init__(
        self,
        settings: Any,
        task: "Task",
        weights: Float32[np.ndarray, " params"],
        buffers: Buffers,
        max_episode_steps: int | None,
    ) -> None:
        """Starts with these weights as the mean. ValueError for a completion log that cannot be read."""
        self._settings, self._seed = settings, task.seed
        assert isinstance(task.agent.policy, MLP)
        bounds = core.episodes.find_action_bounds(task)
        self.learner = core.learner.Learner(settings, task.agent.policy, bounds, task.seed)
        self.distribution = self.Distribution(settings, weights, task.seed)
        self._share = RLShare(settings.rl_share)
        self._log = CompletionLog(settings.completion_log, task.seed)
        self._setup = jobs.Setup(settings, task.agent.policy, bounds, task.seed, buffers, max_episode_steps)
        self._critic_rows = self.learner.critics.copy_rows()  # shared by the jobs of all who learn from them
        self._flights: list[Flight] = []
        self._counters = Counters()
        self._tally = JobTally()
        self._failures = FirstEnvStepFailures()

    @property
    def actor(self) -> Float32[np.ndarray, " params"]:
        """The mean policy's weights."""
        return self.distribution.mean

    def advance(self, progress: Progress, engine: Engine) -> UnitResult:
        """Goes on until an individual has been told, or has acted at random."""
        env_steps, self._tally = self._counters.env_steps, JobTally()
        metrics: dict[str, float] = {}
        while not metrics:
            self._start_jobs(engine)
            flight = self._take_completion(engine)
            metrics = self._complete(flight, engine)
        self._start_jobs(engine)
        return UnitResult(self._counters.env_steps - env_steps, metrics, self._tally.notices)

    def _start_jobs(self, engine: Engine) -> None:
        """Starts new jobs, and again those that were under way when the run was saved."""
        counters = self._counters
        num_critics = sum(isinstance(flight.job, CriticsJob) for flight in self._flights)
        for _ in range(self._settings.actor_workers - len(self._flights) + num_critics):
            self._flights.append(Flight(self._make_individual()))
        if self._may_train_critics() and not num_critics:
            count = self.learner.replay.count
            job = CriticsJob(counters.critics, counters.told, count, jobs.CRITIC_STEPS, self.actor)
            counters.critics += 1
            self._flights.append(Flight(job))
        for flight in self._flights:
            if flight.ticket is None and flight.answer is None:
                flight.submit(engine, self._setup, self.learner)

    def _may_train_critics(self) -> bool:
        """Whether the critics have transitions to learn from, and have taken fewer steps than there are env steps."""
        env_steps = self._counters.env_steps
        is_behind = self._counters.critic_steps < env_steps >= self._settings.start_steps
        return is_behind and len(self.learner.replay) > 0

    def _make_individual(self) -> IndividualJob:
        """The next individual, from the distribution as it is now."""
        counters, settings = self._counters, self._settings
        is_random = settings.count_actors() > 0 and counters.env_steps < settings.start_steps
        rng = make_generator(self._seed, Purpose.RL_SHARE, generation=counters.individuals)
        is_rl = self._share.draw(rng) and counters.critics_version > 0
        if not is_random:
            self._share.count(is_rl)
        job = IndividualJob(
            number=counters.individuals,
            mean_version=counters.told,
            is_random=is_random,
            is_rl=is_rl,
            critics_version=counters.critics_version,
            replay_count=self.learner.replay.count if is_rl else None,
            actor_steps=sum(counters.lengths) if is_rl else 0,
            row=self.distribution.sample(counters.individuals),
            critics=self._critic_rows if is_rl else np.empty((0, 0), np.float32),
        )
        counters.individuals += 1
        return job

    def _take_completion(self, engine: Engine) -> Flight:
        """The next job that is done, in the order of the log as long as it has entries. It is under way no more."""
        number = self._counters.completions
        entry = self._log.find(number)
        candidates = self._flights
        if entry is not None:
            candidates = [flight for flight in self._flights if self._make_entry(flight) == entry]
            if not candidates:
                raise EngineError(
                    f"completion {number} of completion_log is of another run", "--completion_log ANOTHER_FILE"
                )
        while not (done := [flight for flight in candidates if flight.answer is not None]):
            self._collect(candidates, engine)
        if entry is None:
            entry = self._make_entry(done[0])
            self._log.append(entry)
        self._counters.completions += 1
        self._counters.history = extend_history(self._counters.history, entry)
        self._flights.remove(done[0])
        return done[0]

    def _make_entry(self, flight: Flight) -> dict[str, Any]:
        return {"completion": self._counters.completions, "seed": self._seed, **flight.describe()}

    def _collect(self, flights: list[Flight], engine: Engine) -> None:
        """Waits for the answer of one of these jobs."""
        by_ticket = {flight.ticket: flight for flight in flights if flight.ticket is not None}
        ticket, answer = engine.collect(by_ticket)
        flight = by_ticket[ticket]
        flight.answer, flight.ticket = answer, None
        self._tally.work_seconds += answer.seconds
        self._tally.wait_seconds += perf_counter() - flight.submitted - answer.seconds

    def _complete(self, flight: Flight, engine: Engine) -> dict[str, float]:
        """The effect of a job that is done. Returns the row of metrics if it ends a unit."""
        job, answer = flight.job, flight.answer
        if isinstance(job, MeanJob):
            return self._tell(job, answer)
        if isinstance(job, IndividualJob):
            return self._take_back(job, answer, engine)
        self._take_critics(job, answer)
        return {}

    def _take_critics(self, job: CriticsJob, answer: CriticsAnswer) -> None:
        self.learner.take_critics(answer.critics, answer.loss, job.critic_steps)
        self._critic_rows = self.learner.critics.copy_rows()
        self._counters.critics_version += 1
        self._counters.critic_steps += job.critic_steps

    def _take_back(self, job: IndividualJob, answer: IndividualAnswer, engine: Engine) -> dict[str, float]:
        """Keeps what an individual has met. Starts the mean policy's episodes, if it has not acted at random."""
        counters, replay = self._counters, self.learner.replay
        if job.actor_steps:
            core.learner.check_estimates(answer.q_mean)
        for flight in self._flights:
            in_use = flight.replay_count_in_use
            if in_use is not None and not replay.keeps(in_use, len(answer.transitions)):
                self._collect([flight], engine)
        replay.add_rows(answer.transitions)
        counters.env_steps += answer.env_steps
        counters.lengths = [*counters.lengths, answer.env_steps][-NUM_LENGTHS:]
        self._tally.notices += make_failure_notices("an individual", answer.faults)
        if job.is_random:
            self._failures.count(answer.faults, answer.env_steps)
            answered = {"return": answer.fitness, **NO_MEAN_POLICY, "q_mean": nan}
            return self._make_row(job, answered, self.distribution.skip())
        mean = MeanJob(
            number=counters.means,
            mean_version=counters.told,
            individual=job.number,
            is_rl=job.is_rl,
            actor_steps=job.actor_steps,
            q_mean=answer.q_mean,
            fitness=answer.fitness,
            row=self.actor,
            individual_row=answer.row,
        )
        counters.means += 1
        self._flights.append(Flight(mean))
        return {}

    def _tell(self, job: MeanJob, answer: MeanAnswer) -> dict[str, float]:
        """Tells the distribution an individual's return, and the mean policy's."""
        self._tally.notices += make_failure_notices("the mean policy", answer.faults)
        if answer.env_steps <= jobs.MEAN_EPISODES == sum(answer.faults.values()):
            raise AllFailedError("the first env step of the mean policy", answer.faults)
        answered = {
            "return": job.fitness,
            "mean_policy_return": answer.fitness,
            "mean_policy_lag": self._counters.told - job.mean_version,
            "mean_policy_env_steps": answer.env_steps,
            "q_mean": job.q_mean,
        }
        moved = self.distribution.tell(job.individual_row, job.fitness, answer.fitness)
        self._counters.told += 1
        return self._make_row(job, answered, moved)

    def _make_row(
        self, job: IndividualJob | MeanJob, answered: Mapping[str, float], moved: Mapping[str, float]
    ) -> dict[str, float]:
        """Metrics of an individual, and of what was done since the last one. `moved` are those of the distribution."""
        learned = {name: value for name, value in self.learner.take_metrics().items() if name not in answered}
        ours = {
            **answered,
            "is_rl": int(job.is_rl),
            "rl_share": self._share.share,
            **learned,
            "actor_steps": job.actor_steps,
            "work_seconds": self._tally.work_seconds,
            "job_wait_seconds": self._tally.wait_seconds,
        }
        if taken := [name for name in moved if name in ours]:
            raise ValueError(f"the metric {taken[0]!r} needs another name: hebbes has a column of this name")
        return {**ours, **moved}

    def get_state(self) -> TrainerState:
        """The distribution, the critics, the replay, and the jobs that are under way."""
        learned, flights = self.learner.get_state(), pack_flights(self._flights)
        arrays = prefix_arrays("distribution", self.distribution.state_dict())
        arrays |= prefix_arrays("share", self._share.state_dict())
        values = {**learned.values, "counters": asdict(self._counters), **flights.values}
        return TrainerState({**learned.arrays, **arrays, **flights.arrays}, values, learned.segments)

    def set_state(self, state: TrainerState) -> None:
        """Continues from what `get_state` returned."""
        self.learner.set_state(state)
        self._critic_rows = self.learner.critics.copy_rows()
        self.distribution.load_state_dict(state.select_arrays("distribution"))
        self._share.load_state_dict(state.select_arrays("share"))
        try:
            self._counters = Counters(**state.values["counters"])
        except TypeError as error:
            raise ValueError(f"its counters are of another version of hebbes: {error}") from None
        self._flights = unpack_flights(state)
        self._log.report_difference(self._counters.completions, self._counters.history)
