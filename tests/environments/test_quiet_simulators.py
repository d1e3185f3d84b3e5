"""Windows open although something was drawn without one before."""

import os

from hebbes.environments.quiet_simulators import quieten


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
