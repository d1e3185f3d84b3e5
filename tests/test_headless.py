"""Training, evaluation and video where there is no screen, under the real xvfb-run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

from tests.python_process import ROOT

XVFB = ["xvfb-run", "-a", "-s", "-screen 0 1400x900x24 +extension RANDR", "--"]


def run(*command: str) -> None:
    """Runs a command from the clone's root without the screen that whoever runs the tests may have."""
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM", "SDL_VIDEODRIVER"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def frames_in(video: Path) -> int:
    """How many frames of the video can be decoded."""
    capture = cv2.VideoCapture(str(video))
    try:
        assert capture.isOpened()
        count = 0
        while capture.read()[0]:
            count += 1
        return count
    finally:
        capture.release()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="xvfb-run is not installed (package xvfb)")
@pytest.mark.parametrize("environment", ["CarRacing-v3", "HalfCheetah-v5"])
def test_trains_evaluates_and_films(environment, tmp_path):
    flags = ["--popsize", "4", "--generations", "1", "--max_episode_steps", "20", "--eval_episodes", "1"]
    flags += ["--test_episodes", "1", "--threads", "1", "--seed", "0"]
    train = [sys.executable, "train_static.py", "--environment", environment, "--folder", str(tmp_path), *flags]
    run(*XVFB, *train)
    (weights,) = tmp_path.rglob("best.dat")

    video = tmp_path / "film.mp4"
    evaluate = [sys.executable, "evaluate_static.py", "--path_weights", str(weights)]
    run(*XVFB, *evaluate, "--episodes", "1", "--max_episode_steps", "30", "--video", str(video))
    assert frames_in(video) == 31
