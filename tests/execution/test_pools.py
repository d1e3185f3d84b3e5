"""EnvPool's pools: each chunk returns to the worker that has its pool, and no worker keeps pools without a bound."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import numpy as np
import pytest

from hebbes.contracts.randomness import Purpose
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.envpool_env import EnvPoolEnv
from hebbes.execution import workers
from hebbes.execution.chunks import ChunkEvaluator, Task
from hebbes.execution.episode import Agent
from hebbes.execution.in_process import InProcess
from hebbes.execution.transitions import TransitionRecorder
from hebbes.execution.workers import Workers
from hebbes.policies.linear import Linear
from hebbes.strategies.core.populations import GaussianPopulation
from tests.execution.scripted_tasks import make_context

REACHER = Task(Agent(Linear((10,), 2), "tanh"), EnvironmentSpec("Reacher-v5", "envpool"), 11)
"""MuJoCo's smallest task, whose pools replay every start that they have missed."""


def make_population(num_members):
    return GaussianPopulation(np.zeros(20, np.float32), 0.1, 3, 4, num_members - 1)


def make_generation(generation, purpose=Purpose.TRAINING):
    return make_context(purpose=purpose, generation=generation, episodes=(generation,), max_episode_steps=3)


def make_counting_evaluator(folder):
    """An evaluator in a worker process, which writes a line for each pool that is built or freed there."""
    EnvPoolEnv._build = log_calls(folder / "built", EnvPoolEnv._build)
    EnvPoolEnv.close = log_calls(folder / "freed", EnvPoolEnv.close)
    return ChunkEvaluator(REACHER)


def log_calls(path, method):
    def logged(env, *arguments):
        with path.open("a") as file:
            file.write(f"{env.num_envs} sub-environments\n")
        return method(env, *arguments)

    return logged


def count_lines(path):
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """Two worker processes that begin each round of chunks together, and count their pools."""
    wait = workers.wait

    def wait_for_all(connections, timeout=None):
        for connection in connections:
            wait([connection])
        return connections

    monkeypatch.setattr(workers, "wait", wait_for_all)
    made = Workers(REACHER, chunk_size=3, threads=2)
    made._transport._make_host = partial(make_counting_evaluator, tmp_path)
    yield made
    made.close()


def test_the_pool_of_each_chunk_is_made_once(engine, tmp_path):
    for generation in range(4):
        others = [engine.submit(isinstance, ChunkEvaluator) for _ in range(generation % 2)]  # the first worker is busy
        engine.evaluate(make_population(12), make_generation(generation))
        engine.evaluate(make_population(5), make_generation(generation, Purpose.EVALUATION))
        assert [engine.collect(others)[1] for _ in others] == [True] * len(others)
    assert count_lines(tmp_path / "built") == 4 + 2
    assert count_lines(tmp_path / "freed") == 0


@pytest.fixture
def evaluator():
    """A worker's evaluator whose share are chunks 0 and 2 of six: so it keeps 12 sub-environments."""
    made = ChunkEvaluator(REACHER)
    yield made
    made.close()


def play_chunks(evaluator, numbers, generation, max_idle=12):
    for number in numbers:
        ids = range(3 * number, 3 * number + 3)
        evaluator.evaluate(make_population(18), ids, make_generation(generation), 1, max_idle)
    return [(each.key.chunk.start // 3, each.env) for each in evaluator._idle[Purpose.TRAINING]]


def test_a_worker_that_helps_others_keeps_a_bounded_number_of_pools(evaluator):
    for generation in range(6):
        kept = play_chunks(evaluator, range(6), generation)
        assert [number for number, _ in kept] == [0, 1, 2, 3]


def test_a_worker_that_takes_one_chunk_a_generation_keeps_its_own_pools(evaluator):
    own = dict(play_chunks(evaluator, [0, 2], 0))
    for generation, taken in enumerate([1, 3, 4, 5, 1], start=1):
        kept = dict(play_chunks(evaluator, [0, 2, taken], generation))
        assert all(kept[number] is env for number, env in own.items())


def test_so_does_one_that_has_room_for_no_other(evaluator):
    own = dict(play_chunks(evaluator, [0, 2, 4], 0, max_idle=9))
    for generation, taken in enumerate([[1], [3, 5], [1, 3, 5]], start=1):
        kept = dict(play_chunks(evaluator, [0, 2, 4, *taken], generation, max_idle=9))
        assert kept == own


def test_a_chunk_that_is_now_a_worker_s_own_takes_the_place_of_one_that_is_not(evaluator):
    play_chunks(evaluator, [0, 2, 4], 0, max_idle=9)
    kept = dict(play_chunks(evaluator, [2, 4, 5], 1, max_idle=9))
    assert set(kept) == {2, 4, 5} and dict(play_chunks(evaluator, [2, 4, 5], 2, max_idle=9)) == kept


@pytest.mark.parametrize("members", [range(12), range(12, 24)])
def test_a_worker_keeps_its_share_and_what_grew_before(members):
    assert Workers(REACHER, chunk_size=4, threads=2)._count_idle_envs(members) == members.start + 2 * 4
    assert InProcess(REACHER, chunk_size=4, threads=2)._count_idle_envs(members) == members.stop


class Meeting(TransitionRecorder):
    """Waits in the first env step for the episodes of others."""

    def __init__(self, barrier):
        super().__init__(num_members=1)
        self.wait = barrier.wait

    def explore(self, actions):
        self.wait(60)
        self.wait = lambda _: None
        return actions


def test_a_thread_that_lets_later_episodes_pass_finds_its_own_pool(evaluator, tmp_path, monkeypatch):
    monkeypatch.setattr(EnvPoolEnv, "_build", log_calls(tmp_path / "built", EnvPoolEnv._build))
    barrier = Barrier(2)

    def play(episode):
        recorder = Meeting(barrier) if episode < 2 else None
        evaluator.evaluate(make_population(1), range(1), make_generation(episode), 1, max_idle=4, recorder=recorder)

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        for future in [one.submit(play, 0), other.submit(play, 1)]:
            future.result()
        for episode in (3, 4, 5):
            other.submit(play, episode).result()
        one.submit(play, 2).result()
    assert count_lines(tmp_path / "built") == 2


def test_an_evaluation_keeps_its_own_pools_and_none_of_training(evaluator):
    play_chunks(evaluator, range(4), 0)
    for generation, ids in enumerate((range(5), range(4))):
        evaluator.evaluate(make_population(5), ids, make_generation(generation, Purpose.EVALUATION), max_idle=5)
    kept = [(each.key.purpose, len(each.key.seeds)) for idle in evaluator._idle.values() for each in idle]
    assert kept == [(Purpose.TRAINING, 3)] * 4 + [(Purpose.EVALUATION, 4)]


def test_with_a_time_limit_each_pool_is_made_in_its_warm_up_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(EnvPoolEnv, "_build", log_calls(tmp_path / "built", EnvPoolEnv._build))
    engine = InProcess(REACHER, chunk_size=3, threads=1, episode_timeout=1e6)
    for generation in (50, 51):
        engine.evaluate(make_population(6), make_generation(generation))
    assert count_lines(tmp_path / "built") == 2
    engine.close()
