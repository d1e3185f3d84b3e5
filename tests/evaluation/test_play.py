"""One episode in this process, which is shown or filmed."""

import gymnasium
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation.play import play_episode
from hebbes.options.evaluation import EvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.programs.evaluation_run import play_all
from hebbes.recording.console import Console
from tests.evaluation.files_to_play import EVERY_KIND, save_balancing_policy


class Unlucky(CartPoleEnv):
    """Has no start state."""

    def reset(self, **kwargs):
        raise RuntimeError("no world\nfor this seed")


class WithoutPictures(CartPoleEnv):
    """Lacks a file that it needs on a screen."""

    def reset(self, **kwargs):
        if self.render_mode == "human":
            raise FileNotFoundError(2, "No such file or directory", "ship.png")
        return super().reset(**kwargs)


def test_what_an_environment_raises_in_a_reset_is_an_error_of_one_line(monkeypatch):
    monkeypatch.setattr(gymnasium.spec("CartPole-v1"), "entry_point", f"{__name__}:Unlucky")
    with pytest.raises(ValueError, match=r"^CartPole-v1 cannot be played: RuntimeError: no world$"):
        play_episode(EVERY_KIND["hebbian"], EnvironmentSpec("CartPole-v1", "gymnasium"), episode=0, seed=0)


def test_an_environment_that_cannot_be_shown_is_reported(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DISPLAY", ":0")  # nothing is drawn
    monkeypatch.setattr(gymnasium.spec("CartPole-v1"), "entry_point", f"{__name__}:WithoutPictures")
    path = str(save_balancing_policy(tmp_path / "a.dat"))
    config = EvaluateConfig(path_weights=(path,), render=True, episodes=2)
    (shown,) = play_all(config, load_entries(config), Console())
    assert shown.lost and shown.returns.shape == (1, 2)
    assert f"stopped: {path}: [Errno 2] No such file or directory: 'ship.png'" in capsys.readouterr().err
