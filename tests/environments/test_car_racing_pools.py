"""Pools of CarRacing on EnvPool, which play some episodes each."""

from unittest.mock import Mock

import numpy as np
import pytest

from hebbes.environments import envpool_env as module
from hebbes.environments.envpool_env import EPISODES_OF_CAR_RACING, EnvPoolEnv


def make_env():
    return EnvPoolEnv("CarRacing-v3", [3, 4], {}, threads=1)


def test_episodes_of_any_pool_are_those_of_new_environments(monkeypatch):
    monkeypatch.setattr(module, "EPISODES_OF_CAR_RACING", 2)
    env, starts = make_env(), []
    for episode in (0, 1, 2, 3, 4, 3, 4):  # forwards, back into an earlier pool, and forwards again
        start, new = env.start(episode), make_env()
        assert np.array_equal(start, new.start(episode))
        starts.append(start.tobytes())
        new.close()
    assert len(set(starts)) == 5
    env.close()


@pytest.mark.parametrize("episode", [0, EPISODES_OF_CAR_RACING - 1, 30_001])
def test_a_new_environment_replays_less_than_one_pool(episode, monkeypatch):
    """Otherwise a resume after thousands of generations would make all their tracks again."""
    build, resets = EnvPoolEnv._build, []

    def build_counted(env, seeds):
        build(env, seeds)
        pool = env._pool
        env._pool = Mock(_reset=lambda ids: (resets.append(1), pool._reset(ids)), _recv=pool._recv)

    monkeypatch.setattr(EnvPoolEnv, "_build", build_counted)
    env = make_env()
    env.start(episode)
    assert len(resets) == episode % EPISODES_OF_CAR_RACING + 1
    env.close()
