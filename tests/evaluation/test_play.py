"""One episode in this process."""

import gymnasium
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation.play import play_episode
from tests.evaluation.files_to_play import EVERY_KIND


class Unlucky(CartPoleEnv):
    """Has no start state."""

    def reset(self, **kwargs):
        raise RuntimeError("no world\nfor this seed")


def test_what_an_environment_raises_in_a_reset_is_an_error_of_one_line(monkeypatch):
    monkeypatch.setattr(gymnasium.spec("CartPole-v1"), "entry_point", f"{__name__}:Unlucky")
    with pytest.raises(ValueError, match=r"^CartPole-v1 cannot be played: RuntimeError: no world$"):
        play_episode(EVERY_KIND["hebbian"], EnvironmentSpec("CartPole-v1", "gymnasium"), episode=0, seed=0)
