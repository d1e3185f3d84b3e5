"""CEM-RL and P-CEM-RL on Pendulum-v1, with episodes of 50 env steps, and on scripted simulators."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hebbes.contracts.engine import Rollouts
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.strategy import Results
from hebbes.contracts.trainer import AllFailedError
from hebbes.execution.in_process import InProcess
from hebbes.hybrids.cem_rl import CEMRL, CEMRLSettings, measure_trained_members
from hebbes.hybrids.core.learner import Gradients
from hebbes.hybrids.p_cem_rl import PCEMRL, PCEMRLSettings
from hebbes.hybrids.trained_population import TrainedPopulation
from hebbes.recording.metrics import METRICS
from hebbes.strategies.cem import CEM
from hebbes.strategies.core.populations import GaussianPopulation
from tests.hybrids.cem_rl_trainers import (
    LENGTH,
    SCRIPTED,
    SIZES,
    Spy,
    advance,
    assert_same,
    make_context,
    make_task,
    make_trainer,
)


@pytest.fixture
def engine():
    made = InProcess(make_task(), chunk_size=3, threads=2)
    yield made
    made.close()


@pytest.mark.parametrize("kind", [CEMRL, PCEMRL])
def test_steps_and_metrics_of_a_generation(engine, kind):
    (first, second), progress = advance(make_trainer(kind, population_size=6, rl_population=3), engine, 2)
    assert progress.env_steps == 2 * 6 * LENGTH
    assert first.keys() == second.keys() <= METRICS.keys()
    assert (first["critic_steps"], first["actor_steps"]) == (0, 0)
    groups = 1 if kind is PCEMRL else 3
    assert (second["critic_steps"], second["actor_steps"]) == (3 * (6 * LENGTH // 3), groups * 6 * LENGTH)
    assert (first["replay_size"], second["replay_size"]) == (6 * LENGTH, 12 * LENGTH)
    assert np.isnan(first["rl_return_mean"])
    assert first["es_return_mean"] == first["return_mean"]
    assert second["return_mean"] == pytest.approx((second["rl_return_mean"] + second["es_return_mean"]) / 2)
    assert second["return_min"] < second["return_mean"] < second["return_max"]


def test_a_generation_by_hand(engine):
    trainer, by_hand, spy = make_trainer(), make_trainer(), Spy(engine)
    _, progress = advance(trainer, engine, 1)
    advance(by_hand, engine, 1)
    population = by_hand.strategy.ask(1)
    rows, untrained = (np.asarray(population.weights(range(5))) for _ in range(2))
    rng = make_generator(5, Purpose.GRADIENTS, generation=1)
    learner = by_hand.learner
    with torch.no_grad():
        for member in (0, 2):
            for _ in range(4 * LENGTH // 2):
                learner.train_critics(learner.actor.copy(untrained[member : member + 1]), rng)
                learner.critics.move_targets()
            actors = learner.make_actors(rows[member : member + 1])
            for _ in range(4 * LENGTH):
                learner.train_actors(actors, rng)
    before = by_hand.strategy.state_dict()
    metrics = trainer.advance(progress, spy).metrics
    evaluated = np.asarray(spy.populations[0].weights(range(5)))
    assert np.array_equal(evaluated, rows)
    assert np.array_equal(evaluated[[1, 3, 4]], untrained[[1, 3, 4]])  # mirrors and the mean
    assert not np.isclose(evaluated[[0, 2]], untrained[[0, 2]]).all(axis=1).any()
    learned, expected = trainer.learner.critics.get_state(), learner.critics.get_state()
    assert all(np.array_equal(learned[name], expected[name]) for name in expected)
    returns = engine.evaluate(spy.populations[0], make_context(1), range(4)).fitness
    assert metrics["rl_return_mean"] == returns[[0, 2]].mean()
    weights = np.log(3 / np.array([1, 2]))
    parents = np.argsort(-returns)[:2]
    assert {0, 2}.intersection(parents)  # a trained one is told
    best = rows[parents].astype(np.float64)
    mean = weights / weights.sum() @ best
    damp = 0.95 * (0.95 * 1e-3 + 0.05 * 1e-5) + 0.05 * 1e-5
    variance = weights / weights.sum() @ (best - before["mean"]) ** 2 / 2 + damp
    assert trainer.actor == pytest.approx(mean, abs=1e-6)
    assert np.square(trainer.strategy.state_dict()["sigma"]) == pytest.approx(variance, rel=1e-4)


def test_start_steps_withhold_training_only(engine):
    trainer = make_trainer(start_steps=4 * LENGTH)
    rows, _ = advance(trainer, engine, 3)
    assert [row["critic_steps"] for row in rows] == [0, 0, 4 * LENGTH]  # until the env steps exceed it
    pure = make_trainer(rl_population=0)
    pure_rows, _ = advance(pure, engine, 2)
    for row, expected in zip(rows, pure_rows, strict=False):
        assert row["return_mean"] == expected["return_mean"]
        assert row["mean_norm"] == expected["mean_norm"]  # the returns are told
    assert rows[1]["replay_size"] == 8 * LENGTH


def test_without_rl_individuals_it_is_cem(engine):
    trainer = make_trainer(rl_population=0)
    strategy = CEM(CEMRLSettings(**SIZES).make_cem_settings(), trainer.actor, 5)
    rows, _ = advance(trainer, engine, 3)
    for generation in range(3):
        population = strategy.ask(generation)
        rollouts = engine.evaluate(population, make_context(generation))

        def sum_noise(utilities, powers, population=population):
            return engine.weighted_noise_sums(population, utilities, powers)

        strategy.tell(population, Results(rollouts.fitness, rollouts.mean_squared_weights, sum_noise))
    assert np.array_equal(trainer.strategy.state_dict()["mean"], strategy.state_dict()["mean"])
    assert np.array_equal(trainer.strategy.state_dict()["sigma"], strategy.state_dict()["sigma"])
    assert [row["critic_steps"] for row in rows] == [0, 0, 0]


def test_p_cem_rl_with_one_worker_is_cem_rl(engine):
    trainers = [make_trainer(), make_trainer(PCEMRL, actor_workers=1), make_trainer(PCEMRL)]
    for trainer in trainers:
        advance(trainer, engine, 3)
    assert_same(*trainers[:2])
    rows = [trainer.learner.critics.trained.rows for trainer in trainers]
    assert not torch.equal(rows[0], rows[2])


def test_p_cem_rl_trains_its_actors_on_critics_that_have_taken_all_steps(engine):
    trainer, spy = make_trainer(PCEMRL), Spy(engine)
    _, progress = advance(trainer, engine, 1)
    calls, learner = [], trainer.learner
    train_critics, train_actors = learner.train_critics, learner.train_actors
    learner.train_critics = lambda target, rng: calls.append(target.rows.numpy().copy()) or train_critics(target, rng)
    learner.train_actors = lambda actors, rng: calls.append(None) or train_actors(actors, rng)
    population = trainer.strategy.ask(1)
    trainer.advance(progress, spy)
    assert [call is None for call in calls] == [False] * 4 * LENGTH + [True] * 4 * LENGTH
    for k in (0, 1):  # the untrained individuals are the target actors, one after the other
        row = np.asarray(population.weights([2 * k]))
        assert all(np.array_equal(call, row) for call in calls[k * 2 * LENGTH : (k + 1) * 2 * LENGTH])


@pytest.mark.parametrize(("kind", "changes"), [(CEMRL, {}), (PCEMRL, {}), (PCEMRL, {"parallel_critic": True})])
def test_goes_on_with_the_same_bits_on_any_number_of_threads(kind, changes):
    engines = [InProcess(make_task(), chunk_size=3, threads=threads) for threads in (1, 2)]
    whole, first, second = (make_trainer(kind, replay_size=14 * LENGTH, **changes) for _ in range(3))
    advance(whole, engines[0], 4)
    _, progress = advance(first, engines[1], 2)
    state = first.get_state()
    state = replace(state, arrays={name: array.copy() for name, array in state.arrays.items()})
    advance(first, engines[1], 2, progress)  # the segments of the state stay, although the replay has turned over
    second.set_state(state)
    advance(second, engines[1], 2, progress)
    assert_same(whole, second)
    for engine in engines:
        engine.close()


def test_a_trained_members_noise_leads_to_its_weights():
    center, sigma = np.ones(3, np.float32), np.array([0.1, 0.2, 0.4])
    asked = GaussianPopulation(center, sigma, seed=1, generation=2, population_size=4)
    trained = np.array([1.1, 0.8, 1.0], np.float32)
    population = TrainedPopulation(asked, {2: trained})
    assert len(population) == 5
    rows = np.asarray(population.weights([4, 2, 1]))
    assert np.array_equal(rows, [center, trained, asked.weights([1])[0]])
    utilities = np.array([[0.0, 0.5, 2.0, 0.25, 0.0], [0.0, 0.5, 3.0, 0.25, 0.0]])
    found = population.weighted_noise_sums(range(5), utilities, (1, 2))
    others = asked.weighted_noise_sums(range(5), utilities * [1, 1, 0, 1, 1], (1, 2))
    assert found - others == pytest.approx(np.array([[2.0, -2.0, 0.0], [3.0, 3.0, 0.0]]), abs=1e-5)


def test_a_trained_member_without_weight_may_be_nan():
    asked = GaussianPopulation(np.zeros(3, np.float32), 0.1, seed=1, generation=2, population_size=2)
    population = TrainedPopulation(asked, {0: np.full(3, np.nan, np.float32)})
    assert np.isfinite(population.weighted_noise_sums(range(3), np.array([[0.0, 1.0, 0.0]]), (1,))).all()


def make_scripted(script):
    task = make_task(replace(SCRIPTED, env_kwargs=script))
    return make_trainer(task=task), InProcess(task, chunk_size=3, threads=1)


def test_a_generation_in_which_all_tie_moves_nothing_but_the_critics():
    trainer, engine = make_scripted({"truncate_at": 4})
    start = trainer.actor
    rows, _ = advance(trainer, engine, 2)
    assert rows[1]["tied_share"] == 1
    assert (rows[1]["critic_steps"], rows[1]["actor_steps"]) == (16, 32)
    assert np.array_equal(trainer.actor, start)


def test_a_generation_in_which_all_fail_ends_the_run():
    trainer, engine = make_scripted({"rewards": [float("nan")], "truncate_at": 4})
    with pytest.raises(AllFailedError, match=r"^every member failed: non-finite reward in 4 episodes$"):
        advance(trainer, engine, 1)


def test_episodes_of_one_env_step():
    trainer, engine = make_scripted({"truncate_at": 1, "action_weight": 1.0})
    rows, _ = advance(trainer, engine, 2)
    assert (rows[1]["critic_steps"], rows[1]["actor_steps"]) == (4, 8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rl_population": 3}, r"rl_population must be in \[0, 2\], because at most one of each .* got 3"),
        ({"population_size": 5}, "population_size must be an even number"),
    ],
)
def test_refuses_what_it_cannot_use(settings, message):
    with pytest.raises(ValueError, match=message):
        CEMRLSettings(**{"population_size": 4, "rl_population": 2, **settings})


def test_the_defaults_are_those_of_the_papers_code():
    cem_rl, p_cem_rl = CEMRLSettings(), PCEMRLSettings()
    assert (cem_rl.population_size, cem_rl.rl_population, cem_rl.start_steps) == (10, 5, 10_000)
    assert (cem_rl.critic_hidden_sizes, cem_rl.learning_rate, cem_rl.replay_size) == (None, 1e-3, 1_000_000)
    assert (cem_rl.batch_size, p_cem_rl.batch_size) == (100, 256)
    assert cem_rl.make_cem_settings().extra_variance == pytest.approx(9.505e-4)


def test_metrics_say_who_was_best_and_how_long_workers_worked():
    """Of four members, 0 and 2 were trained. The best half is 2 and 1, because 3 failed."""
    returns = np.array([[1.0], [2.0], [3.0], [np.nan]])
    tallies = {"policy_seconds": 0.5, "simulator_seconds": 2.0}
    rollouts = Rollouts(returns, np.ones((4, 1), int), np.zeros(4), (None,) * 4, tallies=tallies)
    metrics = measure_trained_members(rollouts, [0, 2])
    assert (metrics["rl_share"], metrics["rl_parent_share"], metrics["work_seconds"]) == (0.5, 0.5, 2.5)
    assert measure_trained_members(rollouts, [2, 1])["rl_parent_share"] == 1.0
    with_job = replace(rollouts, tallies={**tallies, "critics_seconds": 4.0})
    assert measure_trained_members(with_job, [0, 2])["work_seconds"] == 6.5
    one_left = replace(rollouts, returns=np.array([[np.nan], [2.0], [np.nan], [np.nan]]))
    assert measure_trained_members(one_left, [0, 2])["rl_parent_share"] == 0.0
    tied = replace(rollouts, returns=np.ones((4, 1)))
    assert np.isnan(measure_trained_members(tied, [0, 2])["rl_parent_share"])


def test_gradient_steps_have_their_number_of_threads_and_the_caller_keeps_its_own(monkeypatch):
    train, found = Gradients.train_critics, set()

    def train_and_tell(gradients, *arguments):
        found.add(torch.get_num_threads())
        train(gradients, *arguments)

    monkeypatch.setattr(Gradients, "train_critics", train_and_tell)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        advance(*make_scripted({"truncate_at": 4}), 2)
        assert (found, torch.get_num_threads()) == ({1}, 3)
    finally:
        torch.set_num_threads(before)
