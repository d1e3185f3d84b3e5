"""The limit on the env steps of an episode: registered, an argument of the environment, or a wrapper's."""

import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.episode_limits import (
    advise_episode_limit,
    describe_episode_cap,
    find_time_limit,
    has_time_limit,
)
from hebbes.environments.ids import register
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.part_spec import PartSpec


def make_spec(environment, asked=None, wrapper=None, name="gymnasium.wrappers:TimeLimit"):
    register(environment, ())
    wrappers = () if wrapper is None else (PartSpec(name, {"max_episode_steps": wrapper}),)
    env_kwargs = {} if asked is None else {"max_episode_steps": asked}
    return EnvironmentSpec(environment, "gymnasium", env_kwargs, gymnasium_wrappers=wrappers)


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        (("CartPole-v1",), 500),
        (("CartPole-v1", 30), 30),
        (("CartPole-v1", 700), 700),
        (("CartPole-v1", None, 100), 100),
        (("CartPole-v1", None, 900), 500),
        (("CartPole-v1", -1, 100), 100),
        (("CartPole-v1", None, 9, "gymnasium.wrappers.common:TimeLimit"), 9),
        (("CartPole-v1", None, 9, "own.package:Slower"), 500),
        (("CartPole-v1", -1), None),
        (("CliffWalking-v1", None, 100), 100),
        (("CliffWalking-v1",), None),
    ],
)
def test_the_smallest_limit_is_found(spec, limit):
    found = make_spec(*spec)
    assert (find_time_limit(found), has_time_limit(found)) == (limit, limit is not None)


@pytest.mark.parametrize(("asked", "wrapper", "limit"), [(None, 12, 12), (7, 12, 7), (-1, 15, 15)])
def test_it_is_where_the_simulator_ends_the_episode(asked, wrapper, limit):
    spec = make_spec("Pendulum-v1", asked, wrapper)
    env = make_batch_env(spec, [0], threads=1, training=True)
    env.start(0)
    steps, truncated = 0, False
    while not truncated:
        steps, truncated = steps + 1, env.step(env.action_space.sample()[np.newaxis], np.array([0])).truncated[0]
    env.close()
    assert steps == limit == find_time_limit(spec)


def test_atari_counts_env_steps_and_not_frames():
    for limit in (10, None):
        spec = make_spec("Pong-v5", limit)
        env = make_batch_env(spec, [0], threads=1, training=True)
        env.start(0)
        ends = [env.step(np.array([0]), np.array([0])).truncated[0] for _ in range(10)]
        env.close()
        assert ends == [False] * 9 + [limit == 10]


def test_atari_games_and_our_own_environments_end_their_episodes_themselves():
    for environment in ("Pong-v5", "TMaze-v0"):
        spec = make_spec(environment)
        assert has_time_limit(spec) and not advise_episode_limit(spec, None)
    assert "TMaze-v0 has no limit" in advise_episode_limit(make_spec("TMaze-v0", -1), None)


def test_where_episodes_may_never_end_a_cap_is_advised():
    line = "CliffWalking-v1 has no limit on the env steps of an episode"
    assert line in advise_episode_limit(make_spec("CliffWalking-v1"), None)
    assert not advise_episode_limit(make_spec("CliffWalking-v1"), 100)
    assert not advise_episode_limit(make_spec("CliffWalking-v1", None, 30), None)


@pytest.mark.parametrize(
    ("spec", "cap", "line"),
    [
        (("CartPole-v1",), 50, "training episodes are cut after 50 env steps, evaluations after 500"),
        (("CartPole-v1", -1, 100), 50, "training episodes are cut after 50 env steps, evaluations after 100"),
        (("CartPole-v1", None, 40), 50, ""),
        (("CartPole-v1",), None, ""),
        (("CliffWalking-v1",), 50, ""),
        (("Pong-v5",), 50, "training episodes are cut after 50 env steps"),
    ],
)
def test_shorter_episodes_of_training_are_described(spec, cap, line):
    assert describe_episode_cap(make_spec(*spec), cap) == line
