"""Windows open although something was drawn without one before."""

import os

from hebbes.environments.quiet_simulators import quieten


def test_a_window_opens_after_images_were_drawn(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setenv("SDL_AUDIODRIVER", "pulse")  # the user's own stays
    monkeypatch.setenv("SDL_VIDEODRIVER", "")
    monkeypatch.delenv("SDL_VIDEODRIVER")
    found = []
    for mode in ("rgb_array", "human", "human", "rgb_array"):
        quieten("", mode)
        found.append((os.environ.get("SDL_VIDEODRIVER"), os.environ["SDL_AUDIODRIVER"]))
    assert found == [("dummy", "pulse"), (None, "pulse"), (None, "pulse"), ("dummy", "pulse")]
