"""Simulators that would keep something of an episode over a reset: what was played before does not matter."""

import numpy as np
import pytest

from tests.environments.test_backends import assert_same, draw_actions, make, play


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
