"""Simulators that would keep something of an episode over a reset: what was played before does not matter."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from hebbes.environments.gymnasium_env import GymnasiumEnv
from tests.environments.test_backends import assert_same, draw_actions, make, play
from tests.scripted import ScriptedGymnasiumEnv


@pytest.mark.parametrize("name", ["BipedalWalker-v3", "BipedalWalkerHardcore-v3"])
def test_what_a_simulator_keeps_over_its_reset_does_not_matter(name):
    def play_held(env, episode):
        """An episode in which the action stays as it is."""
        seen, action = [env.start(episode)], draw_actions(env, np.random.default_rng(episode), 1)
        for _ in range(200):
            step = env.step(action, np.arange(1))
            seen += [step.observations, step.rewards]
            if step.terminated or step.truncated:
                return seen
        return seen

    reused = make("gymnasium", name, [5])
    for episode in (0, 1):
        play_held(reused, episode)
        fresh = make("gymnasium", name, [5])
        assert_same(play_held(reused, episode + 2), play_held(fresh, episode + 2))
        fresh.close()
    reused.close()


@pytest.mark.slow
@pytest.mark.parametrize("game", ["BeamRider-v5", "Tennis-v5"])  # a reset without a new console changes both
def test_what_was_played_before_does_not_disturb_an_atari_game(game):
    reused = make("envpool", game, [3])
    play(reused, 0, actions_seed=1, length=100)
    again = play(reused, 2, actions_seed=3, length=60)
    assert_same(again, play(make("envpool", game, [3]), 2, actions_seed=3, length=60))
    assert_same(again, play(make("gymnasium", game, [3]), 2, actions_seed=3, length=60))


class Early(ScriptedGymnasiumEnv):
    """Observes what it has drawn at its first reset, and ignores seeds."""

    drawn = None

    def reset(self, *, seed=None, options=None):
        if self.drawn is None:
            self.drawn = self.np_random.random()
        return np.full(2, self.drawn, np.float32), {}


def test_a_simulator_that_replaces_a_failed_one_is_like_that_of_another_run(monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "Early-v0", EnvSpec("Early-v0", Early))
    limit, starts = [(gymnasium.wrappers.TimeLimit, {"max_episode_steps": 9})], []
    for _ in range(2):
        env = GymnasiumEnv("Early-v0", [3], {"raise_at": 1}, wrappers=limit)
        env.start(0)
        assert env.step(np.zeros((1, 2), np.float32), np.arange(1)).faults
        starts.append(env.start(1))
        env.close()
    np.testing.assert_array_equal(*starts)
