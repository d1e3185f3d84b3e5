"""What the jobs of an asynchronous hybrid are given, what they compute, and what their answers do, by hand."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from hebbes.execution.in_process import InProcess
from hebbes.hybrids import jobs
from hebbes.hybrids.aes_rl import AESRL
from hebbes.hybrids.jobs import CriticsJob, IndividualJob, MeanJob
from tests.hybrids.asynchronous_trainers import LENGTH, advance_until, find_told, make_task, make_trainer


@dataclass
class Given:
    """What a job was made with."""

    job: Any
    actor: np.ndarray
    sampled: np.ndarray | None
    """What the distribution gives an individual of its number."""
    critics: np.ndarray
    env_steps: int
    critic_steps: int
    told: int
    lengths: list


class WatchedAESRL(AESRL):
    """Keeps what each job was made with, and what was told."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.given, self.done, self.told = [], [], []
        tell = self.distribution.tell
        self.distribution.tell = lambda *told: self.told.append(told) or tell(*told)

    def _start_jobs(self, engine):
        super()._start_jobs(engine)
        self._watch_new_jobs()

    def _watch_new_jobs(self):
        known = {id(each.job) for each in self.given}
        counters = self._counters
        for flight in self._flights:
            if id(flight.job) not in known:
                number = flight.job.number if isinstance(flight.job, IndividualJob) else None
                sampled = None if number is None else self.distribution.sample(number)
                rows = self.learner.critics.copy_rows()
                counts = counters.env_steps, counters.critic_steps, counters.told, list(counters.lengths)
                self.given.append(Given(flight.job, self.actor, sampled, rows, *counts))

    def _complete(self, flight, engine):
        self.done.append((flight.job, flight.answer))
        row = super()._complete(flight, engine)
        self._watch_new_jobs()
        return row


@pytest.fixture(scope="module")
def engine():
    made = InProcess(make_task(), chunk_size=3, threads=2)
    yield made
    made.close()


def list_given(trainer, kind):
    return [each for each in trainer.given if isinstance(each.job, kind)]


@pytest.fixture(scope="module")
def watched(engine):
    """A run of three individuals at a time, some of them trained, and its rows."""

    def is_enough(rows):
        return len(find_told(rows)) > 12 and sum(row["is_rl"] for row in rows) > 3

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jobs, "CRITIC_STEPS", 40)
        trainer = make_trainer(WatchedAESRL)
        rows, _ = advance_until(is_enough, trainer, engine)
    return trainer, rows


def test_individuals_are_drawn_from_the_distribution_as_it_is_and_trained_as_long_as_ten_episodes(watched):
    given = list_given(watched[0], IndividualJob)
    for each in given:
        np.testing.assert_array_equal(each.job.row, each.sampled)
        assert each.job.mean_version == each.told
        assert each.job.actor_steps == each.job.is_rl * sum(each.lengths)
        assert each.job.is_random == (each.env_steps < 50)
        if each.job.is_rl:
            np.testing.assert_array_equal(each.job.critics, each.critics)
            assert each.job.replay_count == each.env_steps
    assert max(each.job.actor_steps for each in given) == 10 * LENGTH


def test_the_share_counts_all_individuals_but_those_of_the_warm_up(watched):
    trainer, _ = watched
    counted = [each.job.is_rl for each in list_given(trainer, IndividualJob) if not each.job.is_random]
    state = trainer._share.state_dict()
    assert (state["num_rl"] - 1, state["num_es"] - 1) == (sum(counted), len(counted) - sum(counted))


def test_the_critics_learn_from_the_actions_of_the_mean_policy(watched):
    given = list_given(watched[0], CriticsJob)
    assert len(given) > 3
    for each in given:
        np.testing.assert_array_equal(each.job.row, each.actor)
        assert each.job.replay_count == each.env_steps > each.critic_steps and each.env_steps >= 50
        assert each.job.mean_version == each.told


def test_the_distribution_is_told_the_individual_as_it_played_and_its_own_mean_policy(watched):
    trainer, rows = watched
    individuals = {job.number: (job, answer) for job, answer in trainer.done if isinstance(job, IndividualJob)}
    means = [(job, answer) for job, answer in trainer.done if isinstance(job, MeanJob)]
    assert len(means) == len(trainer.told) > 12
    changed = 0
    for (job, answer), (row, fitness, mean_fitness) in zip(means, trainer.told, strict=True):
        individual, played = individuals[job.individual]
        np.testing.assert_array_equal(row, played.row)
        assert (fitness, mean_fitness) == (played.fitness, answer.fitness)
        changed += not np.array_equal(individual.row, played.row)
        assert (job.is_rl, job.actor_steps) == (individual.is_rl, individual.actor_steps)
    assert changed == sum(job.is_rl for job, _ in means) > 0
    for each in list_given(trainer, MeanJob):
        np.testing.assert_array_equal(each.job.row, each.actor)
    told = [(row["return"], row["mean_policy_return"]) for row in find_told(rows)]
    assert told == [(fitness, mean_fitness) for _, fitness, mean_fitness in trainer.told]


def test_the_lag_is_how_many_were_told_since_the_mean_policy_was_sent_out(engine):
    trainer = make_trainer(rl_share=0.0)
    trainer._start_jobs(engine)
    for _ in range(2):  # the first individuals come back, then the mean policies of all three
        for flight in list(trainer._flights):
            trainer._collect([flight], engine)
        done, trainer._flights = trainer._flights, []
        rows = [trainer._complete(flight, engine) for flight in done]
        for flight in trainer._flights:
            flight.submit(engine, trainer._setup, trainer.learner)
    assert [row["mean_policy_lag"] for row in rows] == [0, 1, 2]


@pytest.fixture(scope="module")
def trained(watched):
    """The run, and gradient steps by hand from its replay and critics at the end."""
    trainer, _ = watched
    setup, state = trainer._setup, trainer.learner.critics.get_state()
    gradients = setup.make_gradients(state["rows"], trainer.learner.replay)
    gradients.critics.set_state(state)
    return trainer, state, gradients


class Undisturbed:
    """An evaluator for jobs that play nothing."""

    def check_abandoned(self):
        """Nobody has given up."""


def test_jobs_of_the_critics_go_on_where_the_last_one_ended(trained):
    """Rows, targets and the moments of the optimizer. Targets follow after every step."""
    trainer, state, gradients = trained
    setup, replay = trainer._setup, trainer.learner.replay
    for number in (7, 8):
        job = CriticsJob(number, 0, replay.count, 30, trainer.actor)
        answer = jobs.train_critics(Undisturbed(), setup, job, replay, state)
        rng = setup.make_batch_generator(1, number)
        target = gradients.actor.copy(trainer.actor[np.newaxis])
        with gradients.use_threads():
            for _ in range(30):
                gradients.train_critics(target, rng)
                gradients.critics.move_targets()
        expected = gradients.critics.get_state()
        for name, array in answer.critics.items():
            np.testing.assert_array_equal(array, expected[name], name)
        assert not np.array_equal(answer.rows, state["rows"])
        state = answer.critics
    other = jobs.train_critics(Undisturbed(), setup, replace(job, number=9), replay, state)
    assert not np.array_equal(other.rows, answer.rows)


def make_individual(trainer, number, **changes):
    row = trainer.distribution.sample(number)
    critics = trainer.learner.critics.copy_rows()
    count = trainer.learner.replay.count
    return replace(IndividualJob(number, 0, False, True, 1, count, 25, row, critics), **changes)


def play(engine, trainer, job):
    """The answer to a job that learns from the trainer's replay, if at all."""
    if isinstance(job, MeanJob):
        ticket = engine.submit(jobs.play_mean, trainer._setup, job.number, job.row)
    else:
        view = trainer.learner.replay if job.is_rl else None
        ticket = engine.submit(jobs.play_individual, trainer._setup, job, view)
    return engine.collect([ticket])[1]


def test_an_individual_takes_its_steps_on_frozen_critics_with_a_new_optimizer(trained, engine):
    trainer = trained[0]
    job = make_individual(trainer, 40)
    answer = play(engine, trainer, job)
    rows, rng = job.row[np.newaxis].copy(), trainer._setup.make_batch_generator(0, 40)
    by_hand = trainer._setup.make_gradients(job.critics, trainer.learner.replay)
    with by_hand.use_threads():
        actors = by_hand.make_actors(rows)
        for _ in range(25):
            by_hand.train_actors(actors, rng)
        actors.fetch_rows()
    np.testing.assert_array_equal(answer.row, rows[0])
    assert answer.q_mean == by_hand.q_mean
    np.testing.assert_array_equal(by_hand.critics.copy_rows(), job.critics)
    other = play(engine, trainer, replace(job, number=41))
    assert not np.array_equal(other.row, answer.row)  # from batches of its own


def test_each_episode_has_a_start_of_its_own(trained, engine):
    trainer = trained[0]
    starts = set()
    for number in range(4):
        job = make_individual(trainer, number, is_rl=False, actor_steps=0, row=trainer.actor)
        answer = play(engine, trainer, job)
        np.testing.assert_array_equal(answer.row, trainer.actor)
        starts.add(answer.transitions[0, :3].tobytes())
    assert len(starts) == 4
    means = [
        play(engine, trainer, MeanJob(number, 0, 0, False, 0, 0.0, 0.0, trainer.actor, trainer.actor)).fitness
        for number in range(4)
    ]
    assert len(set(means)) == 4


def test_an_estimate_of_an_individual_that_is_not_finite_ends_the_run(engine):
    trainer = make_trainer(rl_share=1.0)
    advance_until(lambda rows: rows[-1]["is_rl"], trainer, engine)
    job = make_individual(trainer, 99)
    answer = replace(play(engine, trainer, job), q_mean=np.inf)
    with pytest.raises(FloatingPointError, match="no longer finite"):
        trainer._take_back(job, answer, engine)


def test_no_job_of_the_critics_is_begun_once_they_have_taken_as_many_steps_as_there_are_env_steps(trained):
    trainer, counters = trained[0], trained[0]._counters
    for steps, may_train in ((counters.env_steps - 1, True), (counters.env_steps, False)):
        trainer._counters = replace(counters, critic_steps=steps)
        assert trainer._may_train_critics() == may_train
    trainer._counters = counters


def test_the_log_has_a_completion_before_its_effect(engine, tmp_path):
    log = tmp_path / "log"
    trainer = make_trainer(completion_log=str(log))
    flights = []

    def fail(flight, engine):
        flights.append(flight)
        raise RuntimeError

    trainer._complete = fail
    with pytest.raises(RuntimeError):
        trainer.advance(None, engine)
    (entry,) = map(json.loads, log.read_text().splitlines())
    assert entry == {"completion": 0, "seed": 5, **flights[0].describe()}
