"""Settle and FireReset: wrappers that take actions of their own."""

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from hebbes.wrappers.early_stop import EarlyStop
from hebbes.wrappers.fire_reset import FIRE, FireReset
from hebbes.wrappers.settle import Settle
from tests.scripted import ScriptedEnv

NOOP = 0


def make_ids(*envs):
    return np.array(envs)


def make_noops(count):
    return np.full(count, NOOP)


def test_settle_takes_zero_actions_and_throws_their_rewards_away():
    inner = ScriptedEnv(2, rewards=[1, 2, 4, 8])
    env = Settle(inner, num_steps=3)
    assert env.start(5).tolist() == [[0, 3, 5], [1, 3, 5]]
    assert len(inner.calls) == 3
    for actions, active in inner.calls:
        assert actions.dtype == np.float32 and not actions.any()
        assert active.tolist() == [0, 1]
    assert env.step(np.ones((1, 2)), make_ids(1)).rewards.tolist() == [8]


def test_an_episode_that_ends_while_it_settles_is_reported_once_and_not_stepped():
    inner = ScriptedEnv(4, rewards=[1, 2, 4, 8], terminate_at=[0, 2, 0, 0], truncate_at=[0, 0, 0, 3])
    env = Settle(inner, num_steps=3)
    assert env.start(0).tolist() == [[0, 3, 0], [1, 2, 0], [2, 3, 0], [3, 3, 0]]
    assert [active.tolist() for _, active in inner.calls] == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 2, 3]]
    step = env.step(np.arange(8.0).reshape(4, 2), make_ids(3, 2, 1, 0))
    actions, active = inner.calls[-1]
    assert active.tolist() == [2, 0]
    assert actions.tolist() == [[2, 3], [6, 7]]
    assert step.rewards.tolist() == [0, 8, 0, 8]
    assert step.terminated.tolist() == [False, False, True, False]
    assert step.truncated.tolist() == [True, False, False, False]
    assert step.observations.tolist() == [[3, 3, 0], [2, 4, 0], [1, 2, 0], [0, 4, 0]]
    assert step.info["env_step"].tolist() == [3, 4, 2, 4]
    assert not (env.step(np.zeros((2, 2)), make_ids(2, 0)).terminated).any()


def test_settling_stops_when_every_episode_has_ended():
    inner = ScriptedEnv(2, terminate_at=2)
    env = Settle(inner, num_steps=40)
    env.start(0)
    step = env.step(np.zeros((2, 2)), make_ids(1, 0))
    assert len(inner.calls) == 2
    assert step.terminated.all() and step.rewards.tolist() == [0, 0]


def test_settling_is_no_part_of_the_early_stop_outside():
    env = EarlyStop(Settle(ScriptedEnv(1, rewards=[-1]), num_steps=10), negative_streak=2)
    env.start(0)
    assert [bool(env.step(np.zeros((1, 2)), make_ids(0)).truncated[0]) for _ in range(3)] == [False, False, True]


def make_fire_env(num_envs, **script):
    inner = ScriptedEnv(num_envs, action_space=Discrete(4), **script)
    return FireReset(inner), inner


def list_calls(inner):
    return [(actions.tolist(), active.tolist()) for actions, active in inner.calls]


def test_fires_at_the_start_and_owes_its_reward_once():
    env, inner = make_fire_env(2, rewards=[[1, 10, 100], [2, 20, 200]], lives=[3])
    assert env.start(4).tolist() == [[0, 1, 4], [1, 1, 4]]
    assert list_calls(inner) == [([FIRE, FIRE], [0, 1])]
    assert env.step(make_noops(1), make_ids(1)).rewards.tolist() == [22]
    assert env.step(make_noops(2), make_ids(1, 0)).rewards.tolist() == [200, 11]


def test_fires_after_a_lost_life_and_adds_the_reward():
    # env steps:      FIRE  1   2   FIRE (sub-environment 1 only)
    env, inner = make_fire_env(3, rewards=[0, 1, 10, 100], lives=[[3, 3, 3, 3], [3, 3, 2, 2], [3, 3, 3, 3]])
    env.start(0)
    env.step(make_noops(3), make_ids(0, 1, 2))
    step = env.step(make_noops(3), make_ids(2, 1, 0))
    assert list_calls(inner)[-1] == ([FIRE], [1])
    assert step.rewards.tolist() == [10, 110, 10]
    assert step.observations.tolist() == [[2, 3, 0], [1, 4, 0], [0, 3, 0]]
    assert step.info["env_step"].tolist() == [3, 4, 3]
    calls = len(inner.calls)
    env.step(make_noops(3), make_ids(0, 1, 2))
    assert len(inner.calls) == calls + 1


@pytest.mark.parametrize("end", ["terminate_at", "truncate_at"])
def test_an_episode_that_fire_ends_has_ended(end):
    env, _ = make_fire_env(1, lives=[3, 2, 2], **{end: 3})
    env.start(0)
    step = env.step(make_noops(1), make_ids(0))
    assert (step.terminated[0], step.truncated[0]) == (end == "terminate_at", end == "truncate_at")
    assert step.rewards.tolist() == [3]  # the first FIRE, the action, the second FIRE


def test_does_not_fire_when_the_last_life_ends_the_episode():
    env, inner = make_fire_env(1, lives=[1, 0], terminate_at=2)
    env.start(0)
    assert env.step(make_noops(1), make_ids(0)).terminated.all()
    assert list_calls(inner) == [([FIRE], [0]), ([NOOP], [0])]


def test_an_episode_that_the_first_fire_ends_is_reported_with_its_reward():
    env, inner = make_fire_env(2, rewards=[[7, 1], [1, 2]], terminate_at=[1, 0], lives=[3])
    env.start(0)
    step = env.step(make_noops(2), make_ids(1, 0))
    assert step.rewards.tolist() == [3, 7]
    assert step.terminated.tolist() == [False, True]
    assert list_calls(inner)[1:] == [([NOOP], [1])]


def test_a_life_that_fire_loses_is_followed_by_another_fire():
    env, inner = make_fire_env(1, lives=[3, 2, 1, 1, 1])
    env.start(0)
    env.step(make_noops(1), make_ids(0))
    env.step(make_noops(1), make_ids(0))
    env.step(make_noops(1), make_ids(0))
    assert [actions[0] for actions, _ in list_calls(inner)] == [FIRE, NOOP, FIRE, NOOP, FIRE, NOOP]


def test_lives_are_forgotten_between_episodes():
    env, inner = make_fire_env(1, lives=[3, 2])
    for episode in range(2):
        env.start(episode)
        env.step(make_noops(1), make_ids(0))
    assert [actions[0] for actions, _ in list_calls(inner)] == [FIRE, NOOP, FIRE] * 2


def test_info_without_lives_is_refused():
    env, _ = make_fire_env(1)
    with pytest.raises(ValueError, match=r"needs info\['lives'\] from the environment, got info on \['env_step'\]"):
        env.start(0)
