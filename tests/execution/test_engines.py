"""Every engine gives the same bits as the thread engine with one thread, whatever happens to its workers."""

import os
import signal
import threading
import time
from dataclasses import replace
from multiprocessing.connection import wait

import numpy as np
import pytest

from hebbes.contracts.engine import Moments
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.execution import chunks, workers
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import EngineOptions
from hebbes.execution.engines import make_engine
from hebbes.execution.episode import Agent
from hebbes.execution.in_process import InProcess
from hebbes.execution.observation_moments import make_normalization_buffers
from hebbes.execution.workers import Workers
from hebbes.policies.linear import Linear
from hebbes.strategies.core.populations import GaussianPopulation
from tests.execution.scripted_tasks import make_context, make_task


def make_cartpole_task():
    return Task(Agent(Linear((4,), 2), "argmax"), EnvironmentSpec("CartPole-v1", "envpool"), 11)


def make_population(num_params, size=20):
    return GaussianPopulation(np.zeros(num_params, np.float32), 0.5, 3, 4, size)


def collect_answers(engine, num_params, **changes):
    """All results of an engine in two generations, as bytes."""
    members, answers = make_population(num_params), []
    try:
        for generation in ({"collect_transitions": True}, {"generation": 5, "episodes": (10, 11)}):
            context = make_context(**generation, **changes)
            rollouts = engine.evaluate(members, context)
            moments = [array for each in rollouts.moments for array in (each.mean, each.squares)]
            transitions = [array for each in rollouts.transitions if each for array in vars(each).values()]
            assert len(transitions) == (5 * len(members) if context.collect_transitions else 0)
            weights = members.weights(range(len(members))).astype(np.float64)
            assert rollouts.mean_squared_weights == pytest.approx(np.square(weights).mean(axis=1))
            arrays = [rollouts.returns, rollouts.env_steps, rollouts.mean_squared_weights, *moments, *transitions]
            answers += [array.tobytes() for array in arrays]
        many = make_population(num_params, 599)
        utilities = np.stack([np.linspace(-0.5, 0.5, 600), np.geomspace(1e-9, 1e9, 600)])
        return [*answers, engine.weighted_noise_sums(many, utilities, (1, 2)).tobytes()]
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("make", "num_params", "processes"),
    [
        pytest.param(make_cartpole_task, 8, 2, id="cartpole on envpool", marks=pytest.mark.slow),
        pytest.param(make_task, 4, 1, id="scripted on gymnasium"),
    ],
)
def test_the_same_bits_on_any_number_of_threads_and_workers(make, num_params, processes):
    alone = collect_answers(InProcess(make(), chunk_size=4, threads=1), num_params)
    for threads in (2, 5):
        assert collect_answers(InProcess(make(), chunk_size=4, threads=threads), num_params) == alone
    assert collect_answers(Workers(make(), chunk_size=4, threads=processes), num_params) == alone


def test_each_member_draws_anew_in_each_episode_of_each_generation():
    """So a plastic network has other initial weights in every episode."""
    drawn = []

    class Drawing(Linear):
        def initial_state(self, weights, rngs, buffers):
            drawn.extend(rng.random() for rng in rngs)
            return super().initial_state(weights, rngs, buffers)

    engine = InProcess(replace(make_task(), agent=Agent(Drawing((2,), 2), "tanh")), chunk_size=4, threads=1)
    played = [(generation, episode) for generation in (4, 5) for episode in (2 * generation, 2 * generation + 1)]
    for generation in (4, 5):
        episodes = tuple(episode for each, episode in played if each == generation)
        engine.evaluate(make_population(4), make_context(generation=generation, episodes=episodes))
    engine.close()
    expected = [
        make_generator(11, Purpose.TRAINING, generation=generation, member=member, episode=episode).random()
        for generation, episode in played
        for member in range(21)
    ]
    assert sorted(drawn) == sorted(expected) and len(set(drawn)) == 2 * 2 * 21


def test_simulators_get_the_threads_that_chunks_leave_idle(monkeypatch):
    threads, make = [], chunks.make_batch_env
    monkeypatch.setattr(
        chunks, "make_batch_env", lambda *given, **named: (threads.append(named["threads"]), make(*given, **named))[1]
    )
    for chunk_size in (100, 4):
        engine = InProcess(make_task(), chunk_size=chunk_size, threads=3)
        engine.evaluate(make_population(4), make_context())
        engine.close()
    assert threads[0] == 3 and set(threads[1:]) == {1}


@pytest.mark.parametrize(("members_per_seed", "starts"), [(None, 1), (3, 7), (2, 11), (1, 21)])
def test_as_many_consecutive_members_as_asked_for_have_the_same_start(members_per_seed, starts):
    engine = InProcess(make_task(), chunk_size=4, threads=2)
    context = make_context(episodes=(0,), members_per_seed=members_per_seed)
    moments = engine.evaluate(make_population(4), context).moments
    engine.close()
    seen = [round(float(each.mean[0]), 6) for each in moments]  # the observation contains a random draw from the start
    assert len(set(seen)) == starts
    assert seen == [seen[k - k % (members_per_seed or 21)] for k in range(21)]


def test_training_evaluations_and_tests_have_other_start_states():
    engine, starts = InProcess(make_task(), chunk_size=4, threads=1), set()
    for purpose in (Purpose.TRAINING, Purpose.EVALUATION, Purpose.TEST):
        moments = engine.evaluate(make_population(4), make_context(purpose=purpose)).moments
        starts.add(moments[0].mean.tobytes())  # the observation contains a random draw from the start
    engine.close()
    assert len(starts) == 3


def test_training_wrappers_are_left_out_of_evaluation():
    early_stop = PartSpec("early_stop", {"negative_streak": 1})
    task = make_task(rewards=[-1.0], truncate_at=9, action_weight=0.0)
    environment = replace(task.environment, training_wrappers=(early_stop,))
    engine = InProcess(replace(task, environment=environment), chunk_size=30, threads=1)
    lengths = [
        engine.evaluate(make_population(4), make_context(purpose=purpose)).env_steps.max()
        for purpose in (Purpose.TRAINING, Purpose.EVALUATION)
    ]
    engine.close()
    assert lengths == [2, 9]


@pytest.mark.slow
def test_a_chunk_whose_worker_is_killed_three_times_changes_nothing():
    script = {"truncate_at": 1000}
    alone = collect_answers(InProcess(make_task(**script), chunk_size=30, threads=1), 4)
    engine = Workers(make_task(**script), chunk_size=30, threads=1)
    killed = []

    def kill_three():
        while len(killed) < 3:
            time.sleep(0.1)
            seat = engine._dispatch._seats.get(0)
            if seat is not None and seat not in killed and seat.has_started:
                os.kill(seat.worker.process.pid, signal.SIGKILL)
                killed.append(seat)

    killer = threading.Thread(target=kill_three, daemon=True)
    killer.start()
    assert collect_answers(engine, 4) == alone
    assert len(killed) == 3


def test_three_workers_whose_answers_come_in_an_adverse_order_change_nothing(monkeypatch):
    alone = collect_answers(InProcess(make_task(), chunk_size=4, threads=1), 4)
    sizes = []

    def last_of_all(connections, timeout=None):
        for connection in connections:
            wait([connection])
        sizes.append(len(connections))
        return connections[-1:]

    monkeypatch.setattr(workers, "wait", last_of_all)
    assert collect_answers(Workers(make_task(), chunk_size=4, threads=3), 4) == alone
    assert max(sizes) == 3


def test_an_evaluation_gives_no_moments_and_leaves_no_trace():
    buffers = make_normalization_buffers(Moments(9, np.full(2, 0.5), np.full(2, 4.0)), (2,), 0.001)
    before = {name: array.copy() for name, array in buffers.items()}
    engine = InProcess(make_task(), chunk_size=4, threads=2)
    unobserved = make_context(purpose=Purpose.EVALUATION, buffers=buffers, observe_moments=False)
    assert engine.evaluate(make_population(4), unobserved).moments == (None,) * 21
    assert all(np.array_equal(buffers[name], before[name]) for name in before)
    assert collect_answers(engine, 4) == collect_answers(InProcess(make_task(), chunk_size=4, threads=1), 4)


@pytest.mark.parametrize("members_per_seed", [None, 1, 2])
def test_gymnasium_keeps_few_environments_however_many_chunks(members_per_seed):
    engine = InProcess(make_task(), chunk_size=4, threads=1)
    population = GaussianPopulation(np.zeros(4, np.float32), 0.5, 3, 4, 40)
    engine.evaluate(population, make_context(members_per_seed=members_per_seed))
    assert 1 <= len(engine._transport._pool.host._idle[Purpose.TRAINING]) <= 2
    engine.close()


def test_no_worker_is_left_behind():
    engine = Workers(make_task(), chunk_size=4, threads=2)
    user = threading.Thread(target=engine.evaluate, args=(make_population(4), make_context()))
    user.start()
    user.join()
    time.sleep(0.3)
    processes = [worker.process for worker in engine._transport.workers]
    assert [process.is_alive() for process in processes] == [True, True]  # they outlive the thread that started them
    engine.close()
    engine.close()
    assert [process.is_alive() for process in processes] == [False, False]


def test_auto_takes_threads_for_envpool_and_processes_for_gymnasium():
    made = [make_engine(each, EngineOptions(chunk_size=4, threads=2)) for each in (make_cartpole_task(), make_task())]
    assert [type(engine) for engine in made] == [InProcess, Workers]
    assert type(make_engine(make_task(), EngineOptions(chunk_size=4, threads=1))) is InProcess
