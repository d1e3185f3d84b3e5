"""P-CEM-RL whose critics are trained by a job while the individuals are trained and evaluated, on Pendulum-v1."""

import numpy as np
import pytest
import torch

from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.execution.in_process import InProcess
from hebbes.execution.workers import Workers
from hebbes.hybrids import jobs
from hebbes.hybrids.p_cem_rl import PCEMRL
from tests.hybrids.cem_rl_trainers import LENGTH, Spy, advance, assert_same, make_task, make_trainer


@pytest.fixture
def engine():
    made = InProcess(make_task(), chunk_size=3, threads=2)
    yield made
    made.close()


def test_the_parallel_critics_of_p_cem_rl_by_hand(engine, monkeypatch):
    monkeypatch.setattr(jobs, "CRITIC_STEPS", 3 * LENGTH)
    trainer, by_hand = make_trainer(PCEMRL, parallel_critic=True), make_trainer(PCEMRL)
    start = trainer.learner.critics.get_state()
    rows, progress = advance(trainer, engine, 2)  # no individual is trained before the critics are
    advance(by_hand, engine, 1)
    assert [(row["critic_steps"], row["actor_steps"]) for row in rows] == [(0, 0), (6 * LENGTH, 0)]
    learner, mean = by_hand.learner, by_hand.actor
    assert all(np.array_equal(array, start[name]) for name, array in learner.critics.get_state().items())
    rng = make_generator(5, Purpose.GRADIENTS, generation=1, member=1)
    with torch.no_grad():
        for _ in range(6 * LENGTH):  # the first multiple that is no less than the 4 * LENGTH env steps so far
            learner.train_critics(learner.actor.copy(mean[np.newaxis]), rng)
            learner.critics.move_targets()
    critics, expected = trainer.learner.critics.get_state(), learner.critics.get_state()
    assert all(np.array_equal(critics[name], expected[name]) for name in expected)
    assert rows[1]["critic_loss"] == pytest.approx(learner.critic_loss, rel=1e-5)
    spy = Spy(engine)
    population = trainer.strategy.ask(2)
    trained = np.asarray(population.weights([0, 2]))
    learner.replay, learner._replay = trainer.learner.replay, trainer.learner.replay
    rng = make_generator(5, Purpose.GRADIENTS, generation=2)
    with torch.no_grad():
        actors = learner.make_actors(trained)
        for _ in range(4 * LENGTH):
            learner.train_actors(actors, rng)
    third = trainer.advance(progress, spy).metrics
    assert (third["critic_steps"], third["actor_steps"]) == (3 * LENGTH, 4 * LENGTH)  # 8 * LENGTH env steps so far
    assert np.array_equal(np.asarray(spy.populations[0].weights([0, 2])), trained)  # on the critics before the job


def test_the_job_of_the_critics_counts_as_work(engine, monkeypatch):
    monkeypatch.setattr(jobs, "CRITIC_STEPS", 10 * LENGTH)
    answers, train = [], jobs.train_critics

    def spy(*arguments):
        answers.append(train(*arguments))
        return answers[-1]

    monkeypatch.setattr(jobs, "train_critics", spy)
    rows, _ = advance(make_trainer(PCEMRL, parallel_critic=True), engine, 2)
    assert rows[1]["work_seconds"] > answers[0].seconds > 0


def test_parallel_critics_pause_at_their_bound(engine, monkeypatch):
    monkeypatch.setattr(jobs, "CRITIC_STEPS", 10 * LENGTH)
    rows, _ = advance(make_trainer(PCEMRL, parallel_critic=True), engine, 5)
    assert [row["critic_steps"] for row in rows] == [0, 10 * LENGTH, 0, 10 * LENGTH, 0]
    assert [row["actor_steps"] for row in rows] == [0, 0, 4 * LENGTH, 4 * LENGTH, 4 * LENGTH]


@pytest.mark.slow
@pytest.mark.parametrize("transport", [InProcess, Workers])
def test_a_generation_with_parallel_critics_does_not_depend_on_the_workers(transport, engine, monkeypatch):
    monkeypatch.setattr(jobs, "CRITIC_STEPS", 50)
    trainers = [make_trainer(PCEMRL, parallel_critic=True) for _ in range(2)]
    other = transport(make_task(), chunk_size=3, threads=1)
    for trainer, used in zip(trainers, (engine, other), strict=True):
        advance(trainer, used, 3)
    other.close()
    assert_same(*trainers)
