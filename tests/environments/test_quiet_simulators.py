"""Windows open although something was drawn without one before, and warnings of a user's environment are kept."""

import os
import sys
import warnings

import gymnasium

from hebbes.environments.gymnasium_env import GymnasiumEnv
from hebbes.environments.ids import resolve
from hebbes.environments.quiet_simulators import quieten
from tests.scripted import ScriptedGymnasiumEnv


def test_a_window_opens_after_images_were_drawn(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":9")
    for name in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):
        monkeypatch.setenv(name, "")  # what it was is there again afterwards
        monkeypatch.delenv(name)
    quieten("", "rgb_array")
    monkeypatch.setenv("SDL_AUDIODRIVER", "pulse")  # the user's own stays
    found = []
    for mode in ("rgb_array", "human", "human", "rgb_array"):
        quieten("", mode)
        found.append((os.environ.get("SDL_VIDEODRIVER"), os.environ["SDL_AUDIODRIVER"]))
    assert found == [("dummy", "pulse"), (None, "pulse"), (None, "pulse"), ("dummy", "pulse")]


class Outspoken(ScriptedGymnasiumEnv):
    """Warns whenever it is made."""

    def __init__(self, render_mode=None):
        super().__init__(render_mode=render_mode)
        warnings.warn("made", UserWarning, stacklevel=1)


def test_a_warning_of_a_users_environment_is_printed_once(monkeypatch):
    monkeypatch.setitem(
        gymnasium.registry, "Outspoken-v0", gymnasium.envs.registration.EnvSpec("Outspoken-v0", Outspoken)
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        GymnasiumEnv("Outspoken-v0", range(5), {}).close()
    assert [str(each.message) for each in said] == ["made"]


def test_pybullet_needs_no_standard_error(monkeypatch):
    resolve("InvertedPendulumBulletEnv-v0")  # imports the package
    monkeypatch.setattr(sys, "stderr", None)
    GymnasiumEnv("InvertedPendulumBulletEnv-v0", [3], {}).close()
