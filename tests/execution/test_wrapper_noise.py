"""A user's wrapper that draws random numbers gives the same bits on any engine, in any chunk and by any worker."""

import os
import signal
from dataclasses import dataclass, replace

import gymnasium
import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.part_spec import PartSpec
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.execution.in_process import InProcess
from hebbes.execution.workers import Workers
from hebbes.policies.linear import Linear
from hebbes.training.prepare import prepare
from hebbes.wrappers.base import BatchWrapper
from tests.execution.scripted_tasks import POPULATION, make_context
from tests.scripted import ScriptedEnv
from tests.training.scripted_runs import make_scripted_config

HERE = "tests.execution.test_wrapper_noise"


@dataclass(eq=False, kw_only=True)
class NoisyReward(BatchWrapper):
    """Adds Gaussian noise to each reward."""

    def step(self, actions, active):
        env_step = self.env.step(actions, active)
        return replace(env_step, rewards=env_step.rewards + [self.np_random[each].normal() for each in active])


class StartForgotten(NoisyReward):
    def start(self, episode):
        return self.env.start(episode)


class NoisyGymnasiumReward(gymnasium.RewardWrapper):
    def reward(self, reward):
        return reward + self.np_random.normal()


class Unseeded(gymnasium.Env):
    """Does nothing with the seed of `reset`."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, False, {}


gymnasium.register("Unseeded-v0", entry_point=Unseeded, max_episode_steps=4)

BATCH = {"wrappers": (PartSpec(f"{HERE}:NoisyReward"),)}
BOTH = {**BATCH, "gymnasium_wrappers": (PartSpec(f"{HERE}:NoisyGymnasiumReward"),)}
SCRIPTED = EnvironmentSpec("Scripted-v0", "gymnasium", {"truncate_at": 4}, imports=("tests.scripted",), **BOTH)
UNSEEDED = EnvironmentSpec("Unseeded-v0", "gymnasium", imports=(HERE,), **BOTH)


def make_task(spec):
    return Task(Agent(Linear((2,), 2), "tanh"), spec, 11)


def collect_returns(engine, between=lambda: None):
    """The returns of two generations, between which something happens."""
    try:
        first = engine.evaluate(POPULATION, make_context())
        between()
        second = engine.evaluate(POPULATION, make_context(generation=5, episodes=(10, 11), members_per_seed=1))
        return [first.returns.tolist(), second.returns.tolist()]
    finally:
        engine.close()


@pytest.mark.parametrize("spec", [SCRIPTED, UNSEEDED], ids=["seeded", "unseeded"])
def test_the_same_bits_on_any_number_of_threads_and_in_any_chunk(spec):
    alone = collect_returns(InProcess(make_task(spec), chunk_size=4, threads=1))
    assert collect_returns(InProcess(make_task(spec), chunk_size=4, threads=3)) == alone
    assert collect_returns(InProcess(make_task(spec), chunk_size=21, threads=1)) == alone
    assert len(set(alone[1][0])) > 1


@pytest.mark.slow
def test_the_same_bits_with_worker_processes_also_after_one_was_replaced():
    alone = collect_returns(InProcess(make_task(SCRIPTED), chunk_size=4, threads=1))
    engine = Workers(make_task(SCRIPTED), chunk_size=4, threads=2)

    def kill_one():
        os.kill(engine._dispatch._seats[0].worker.process.pid, signal.SIGKILL)

    assert collect_returns(engine, kill_one) == alone


def play(spec, seeds, episode, env_steps=3):
    """The rewards of some env steps of sub-environments with these seeds."""
    env = make_batch_env(spec, seeds, threads=1, training=True)
    env.start(episode)
    zeros, active = np.zeros((len(seeds), *env.action_space.shape), np.float32), np.arange(len(seeds))
    rewards = [env.step(zeros, active).rewards.tolist() for _ in range(env_steps)]
    env.close()
    return list(zip(*rewards, strict=True))


@pytest.mark.parametrize("backend", ["gymnasium", "envpool"])
def test_what_a_sub_environment_draws_depends_on_its_seed_and_the_episode_alone(backend):
    spec = EnvironmentSpec("Pendulum-v1", backend, **BATCH)
    together = play(spec, [7, 8, 7], episode=3)
    assert together == [*play(spec, [7], 3), *play(spec, [8], 3), *play(spec, [7], 3)]
    assert together[0] == together[2] != together[1]
    assert play(spec, [7], 4) != play(spec, [7], 3)


def test_a_sub_environment_that_is_not_stepped_draws_nothing():
    def draw(*ids):
        env = NoisyReward(ScriptedEnv(2))
        env.start(0)
        return [env.step(np.zeros((1, 2)), np.array([each])).rewards[0] for each in ids]

    assert sorted(draw(0, 0, 1)) == sorted(draw(1, 0, 0))


def test_two_wrappers_draw_different_numbers_which_begin_anew_with_each_episode():
    inner = NoisyReward(ScriptedEnv(1))
    outer = NoisyReward(inner)
    drawn = []
    for episode in (0, 1, 0):
        outer.start(episode)
        drawn.append([each.np_random[0].normal() for each in (inner, outer)])
    assert drawn[0] == drawn[2]
    assert len({number for pair in drawn for number in pair}) == 4


def test_a_wrapper_that_does_not_begin_its_generators_is_refused_before_the_run(tmp_path):
    line = rf"wrappers '{HERE}:StartForgotten' cannot be used: .*np_random is begun anew by super\(\).start"
    with pytest.raises(ValueError, match=line):
        prepare(make_scripted_config(tmp_path, wrappers=(f"{HERE}:StartForgotten",)))
    assert not list(tmp_path.iterdir())
